// FP4 e2m1: codes 0..7 are 0, 0.5, 1, 1.5, 2, 3, 4, 6; codes 8..15 the negatives. No infinity, no NaN.
#pragma once

#include <algorithm>
#include <array>

#include "numerics/minifloat.h"

namespace sinter::numerics {

inline constexpr float kE2m1Max = 6.0f;

inline constexpr std::array<float, 16> kE2m1Values = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                                      -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

// Of the low nibble; the upper bits are ignored.
constexpr float from_e2m1(uint8_t code) { return kE2m1Values[code & 15]; }

// To nearest, ties to the even code, beyond 6 saturates; NaN gives 7, as the GPU's conversion
// (cvt.rn.satfinite) does. Negative values that round to zero give 8.
constexpr uint8_t to_e2m1(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (is_nan_magnitude(magnitude)) return 7;
  return static_cast<uint8_t>((bits >> 28 & 8) | std::min(round_magnitude<1, 1>(magnitude), 7u));
}

// Two codes in a byte: the even element is the low nibble.
constexpr uint8_t pack_e2m1(uint8_t even, uint8_t odd) { return static_cast<uint8_t>(even | odd << 4); }
constexpr float e2m1_even(uint8_t pair) { return kE2m1Values[pair & 15]; }
constexpr float e2m1_odd(uint8_t pair) { return kE2m1Values[pair >> 4]; }

}  // namespace sinter::numerics
