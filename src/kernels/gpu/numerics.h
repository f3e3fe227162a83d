// Small floats on the device, bit by bit what src/numerics computes on the host.
#pragma once

#include "gpu/target.h"

namespace sinter::gpu {

#if defined(__CUDACC__)
SINTER_DEVICE U32 bits_of(float value) { return __float_as_uint(value); }
SINTER_DEVICE float float_of(U32 bits) { return __uint_as_float(bits); }
#else
inline U32 bits_of(float value) { return __builtin_bit_cast(U32, value); }
inline float float_of(U32 bits) { return __builtin_bit_cast(float, bits); }
#endif

constexpr U32 kInfinityBits = 0x7f800000u;
SINTER_DEVICE float infinity() { return float_of(kInfinityBits); }

// Elements as they lie in memory.
struct Bf16 {
  U16 bits;
};
struct F16 {
  U16 bits;
};

// To nearest, ties to even, in a format of `kMantissaBits` and `kBias` whose exponents have no upper end.
template <int kMantissaBits, int kBias>
SINTER_DEVICE U32 round_magnitude(U32 magnitude) {
  const int exponent = static_cast<int>(magnitude >> 23) - 127 + kBias;
  const U32 fraction = magnitude & 0x7fffffu;
  const bool is_normal = exponent >= 1;
  const U32 significand = is_normal ? static_cast<U32>(exponent) << 23 | fraction
                                    : fraction | (magnitude >> 23 != 0 ? 0x800000u : 0u);
  const int shift = 23 - kMantissaBits + (is_normal ? 0 : 1 - exponent);
  if (shift > 25) return 0;
  const U32 kept = significand >> shift;
  const U32 dropped = significand & ((1u << shift) - 1);
  const U32 half = 1u << (shift - 1);
  return kept + (dropped > half || (dropped == half && (kept & 1) != 0) ? 1 : 0);
}

SINTER_DEVICE float from_bf16(U32 bits) { return float_of(bits << 16); }

// A NaN stays one and becomes quiet.
SINTER_DEVICE U16 to_bf16(float value) {
  const U32 bits = bits_of(value);
  if ((bits & 0x7fffffffu) > kInfinityBits) return static_cast<U16>(bits >> 16 | 0x40);
  return static_cast<U16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

SINTER_DEVICE float from_fp16(U32 bits) {
  const U32 sign = (bits & 0x8000u) << 16;
  const U32 magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00) return float_of(sign | kInfinityBits | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x400) return float_of(sign | ((magnitude << 13) + (112u << 23)));
  return float_of(sign | bits_of(static_cast<float>(magnitude) * 0x1p-24f));
}

SINTER_DEVICE U16 to_fp16(float value) {
  const U32 bits = bits_of(value);
  const U32 sign = bits >> 16 & 0x8000;
  const U32 magnitude = bits & 0x7fffffffu;
  if (magnitude > kInfinityBits) return static_cast<U16>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  return static_cast<U16>(sign | min_of(round_magnitude<10, 15>(magnitude), 0x7c00u));
}

SINTER_DEVICE float from_e4m3(U32 code) {
  const U32 sign = (code & 0x80u) << 24;
  const U32 magnitude = code & 0x7fu;
  if (magnitude == 0x7f) return float_of(sign | 0x7fc00000u);
  // Read as a float32 the code is 2^-120 of its value, subnormals included.
  return float_of(sign | bits_of(float_of(magnitude << 20) * 0x1p120f));
}

// Beyond 448 saturates; NaN gives 0x7f.
SINTER_DEVICE U8 to_e4m3(float value) {
  const U32 bits = bits_of(value);
  const U32 magnitude = bits & 0x7fffffffu;
  if (magnitude > kInfinityBits) return 0x7f;
  return static_cast<U8>((bits >> 24 & 0x80) | min_of(round_magnitude<3, 7>(magnitude), 0x7eu));
}

SINTER_DEVICE float from_e2m1(U32 code) {
  return float_of((code & 8u) << 28 | bits_of(float_of((code & 7u) << 22) * 0x1p126f));
}

// Beyond 6 saturates; NaN gives 7.
SINTER_DEVICE U8 to_e2m1(float value) {
  const U32 bits = bits_of(value);
  const U32 magnitude = bits & 0x7fffffffu;
  if (magnitude > kInfinityBits) return 7;
  return static_cast<U8>((bits >> 28 & 8) | min_of(round_magnitude<1, 1>(magnitude), 7u));
}

SINTER_DEVICE float from_e8m0(U32 code) {
  if (code == 0) return 0x1p-127f;
  return float_of(code == 0xff ? 0x7fc00000u : code << 23);
}

// Element i of a row as float32, and back.
SINTER_DEVICE float load(const float* row, I64 i) { return row[i]; }
SINTER_DEVICE float load(const Bf16* row, I64 i) { return from_bf16(row[i].bits); }
SINTER_DEVICE float load(const F16* row, I64 i) { return from_fp16(row[i].bits); }
SINTER_DEVICE void store(float* row, I64 i, float value) { row[i] = value; }
SINTER_DEVICE void store(Bf16* row, I64 i, float value) { row[i].bits = to_bf16(value); }

// Ranks floats: a larger key is a larger value; -0 equals +0, NaN is under -infinity.
SINTER_DEVICE U32 order_key(float value) {
  const U32 bits = bits_of(value + 0.0f);
  return value != value ? 0 : (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
// Among equal values the lower position has the larger key.
SINTER_DEVICE U64 rank_key(float value, U32 position) {
  return static_cast<U64>(order_key(value)) << 32 | static_cast<U32>(~position);
}
SINTER_DEVICE float key_value(U32 order_key) {
  if (order_key == 0) return -infinity();
  return float_of((order_key >> 31) != 0 ? order_key & 0x7fffffffu : ~order_key);
}
SINTER_DEVICE int key_position(U64 rank_key) { return static_cast<int>(~static_cast<U32>(rank_key)); }

}  // namespace sinter::gpu
