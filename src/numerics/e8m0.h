// E8M0, the block scale of the MX formats: byte e is 2^(e - 127), 255 is NaN. There is no zero.
#pragma once

#include "numerics/minifloat.h"

namespace sinter::numerics {

inline constexpr uint8_t kE8m0Nan = 0xff;

constexpr float from_e8m0(uint8_t code) {
  if (code == 0) return 0x1p-127f;  // the only subnormal
  if (code == kE8m0Nan) return std::bit_cast<float>(0x7fc00000u);
  return std::bit_cast<float>(uint32_t{code} << 23);
}

// The smallest power of two that is not under `value`, from 2^-127 (for zero too) to 2^127, where it
// saturates; NaN for NaN and negative values.
constexpr uint8_t to_e8m0_ceil(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value == 0) return 0;
  if (bits > 0x7f800000u) return kE8m0Nan;
  if (bits <= 0x00400000u) return 0;
  const uint32_t code = (bits >> 23) + ((bits & 0x7fffffu) != 0 ? 1 : 0);
  return static_cast<uint8_t>(code < 254 ? code : 254);
}

}  // namespace sinter::numerics
