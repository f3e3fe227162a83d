// Exact ranking of floats with their positions: a larger key is a larger value, or among equal values the
// lower position. -0 equals +0 and NaN comes last, so any input sorts.
#pragma once

#include <bit>
#include <cstdint>

namespace sinter::kernels::cpu {

inline uint64_t rank_key(float value, uint32_t position) {
  const uint32_t bits = std::bit_cast<uint32_t>(value + 0.0f);  // -0 becomes +0
  const uint32_t ordered = value != value ? 0 : (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return uint64_t{ordered} << 32 | ~position;
}

// -infinity is the least value, NaN included.
inline float key_value(uint64_t key) {
  const auto ordered = static_cast<uint32_t>(key >> 32);
  if (ordered == 0) return -std::bit_cast<float>(0x7f800000u);
  return std::bit_cast<float>((ordered >> 31) != 0 ? ordered & 0x7fffffffu : ~ordered);
}

inline uint32_t key_position(uint64_t key) { return ~static_cast<uint32_t>(key); }

}  // namespace sinter::kernels::cpu
