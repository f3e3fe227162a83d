// IEEE half precision.
#pragma once

#include <algorithm>

#include "numerics/minifloat.h"

namespace sinter::numerics {

constexpr float from_fp16(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00)  // infinity and NaN keep their payload
    return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ff) << 13);
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(expand_magnitude<10, 15>(magnitude)));
}

// To nearest, ties to even; overflow gives infinity; a NaN stays one and becomes quiet.
constexpr uint16_t to_fp16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (is_nan_magnitude(magnitude)) return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  return static_cast<uint16_t>(sign | std::min(round_magnitude<10, 15>(magnitude), 0x7c00u));
}

}  // namespace sinter::numerics
