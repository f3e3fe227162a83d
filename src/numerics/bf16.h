// bfloat16: the upper half of a float32.
#pragma once

#include "numerics/minifloat.h"

namespace sinter::numerics {

constexpr float from_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// To nearest, ties to even; overflow gives infinity; a NaN stays one and becomes quiet.
constexpr uint16_t to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (is_nan_magnitude(bits & 0x7fffffffu)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace sinter::numerics
