// Element types as they lie in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sinter {

enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kF8E4M3,    // e4m3fn: no infinity, NaN 0x7f and 0xff
  kF8E8M0,    // 2^(byte - 127), 255 is NaN
  kF4E2M1x2,  // two codes per byte, low nibble first; a shape counts bytes
  kU8,
  kI8,
  kI32,
  kI64,
};

constexpr size_t size_bytes(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32: return 4;
    case DType::kF16:
    case DType::kBF16: return 2;
    case DType::kI64: return 8;
    case DType::kF8E4M3:
    case DType::kF8E8M0:
    case DType::kF4E2M1x2:
    case DType::kU8:
    case DType::kI8: return 1;
  }
  return 0;
}

constexpr std::string_view name(DType dtype) {
  switch (dtype) {
    case DType::kF32: return "f32";
    case DType::kF16: return "f16";
    case DType::kBF16: return "bf16";
    case DType::kF8E4M3: return "e4m3";
    case DType::kF8E8M0: return "e8m0";
    case DType::kF4E2M1x2: return "e2m1x2";
    case DType::kU8: return "u8";
    case DType::kI8: return "i8";
    case DType::kI32: return "i32";
    case DType::kI64: return "i64";
  }
  return "?";
}

}  // namespace sinter
