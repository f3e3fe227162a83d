// FP8 e4m3fn: bias 7, largest 448, smallest 2^-9, no infinity, NaN 0x7f and 0xff.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "numerics/minifloat.h"

namespace sinter::numerics {

inline constexpr float kE4m3Max = 448.0f;
inline constexpr float kE4m3Smallest = 0x1p-9f;

inline constexpr std::array<float, 256> kE4m3Values = [] {
  std::array<float, 256> values{};
  for (uint32_t code = 0; code < 256; ++code) {
    const float magnitude =
        (code & 0x7f) == 0x7f ? std::numeric_limits<float>::quiet_NaN() : expand_magnitude<3, 7>(code & 0x7f);
    values[code] = code < 128 ? magnitude : -magnitude;
  }
  return values;
}();

constexpr float from_e4m3(uint8_t code) { return kE4m3Values[code]; }

// To nearest, ties to even; beyond 448 (infinities too) saturates; NaN gives 0x7f.
constexpr uint8_t to_e4m3(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (is_nan_magnitude(magnitude)) return 0x7f;
  return static_cast<uint8_t>((bits >> 24 & 0x80) | std::min(round_magnitude<3, 7>(magnitude), 0x7eu));
}

}  // namespace sinter::numerics
