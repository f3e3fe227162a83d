// Arithmetic shared by the small floats: sign aside, every one is a window on float32 with fewer
// exponent and mantissa bits.
#pragma once

#include <bit>
#include <cstdint>

namespace sinter::numerics {

// Code of |x| rounded to nearest, ties to the even code, in a format whose exponent range has no upper
// end: the caller saturates or makes infinities. `magnitude` holds the bits of a finite or infinite |x|.
template <int kMantissaBits, int kBias>
constexpr uint32_t round_magnitude(uint32_t magnitude) {
  const int exponent = static_cast<int>(magnitude >> 23) - 127 + kBias;
  const uint32_t fraction = magnitude & 0x7fffffu;
  // A normal result keeps exponent and fraction side by side, so that a carry raises the exponent. A
  // subnormal one is the whole significand, shifted further.
  const bool is_normal = exponent >= 1;
  const uint32_t significand = is_normal ? static_cast<uint32_t>(exponent) << 23 | fraction
                                         : fraction | (magnitude >> 23 != 0 ? 0x800000u : 0u);
  const int shift = 23 - kMantissaBits + (is_normal ? 0 : 1 - exponent);
  if (shift > 25) return 0;  // under half of the smallest subnormal
  const uint32_t kept = significand >> shift;
  const uint32_t dropped = significand & ((1u << shift) - 1);
  const uint32_t half = 1u << (shift - 1);
  return kept + (dropped > half || (dropped == half && (kept & 1) != 0) ? 1 : 0);
}

// Value of a finite code without sign. Exact: float32 holds every value of these formats.
template <int kMantissaBits, int kBias>
constexpr float expand_magnitude(uint32_t code) {
  const uint32_t exponent = code >> kMantissaBits;
  const uint32_t fraction = code & ((1u << kMantissaBits) - 1);
  if (exponent != 0)
    return std::bit_cast<float>((exponent + 127 - kBias) << 23 | fraction << (23 - kMantissaBits));
  constexpr float kSmallest = std::bit_cast<float>(uint32_t{127 + 1 - kBias - kMantissaBits} << 23);
  return static_cast<float>(fraction) * kSmallest;
}

constexpr bool is_nan_magnitude(uint32_t magnitude) { return magnitude > 0x7f800000u; }

}  // namespace sinter::numerics
