// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"
// (SC 2011): the same (key, counter) gives the same number on every machine, in any order.
#pragma once

#include <array>
#include <cstdint>

namespace sinter::kernels::cpu {

constexpr std::array<uint32_t, 4> philox4x32_10(std::array<uint32_t, 4> counter,
                                                std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t left = uint64_t{0xd2511f53} * counter[0];
    const uint64_t right = uint64_t{0xcd9e8d57} * counter[2];
    counter = {static_cast<uint32_t>(right >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(right),
               static_cast<uint32_t>(left >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(left)};
    key[0] += 0x9e3779b9;
    key[1] += 0xbb67ae85;
  }
  return counter;
}

// Uniform in [0, 1): the first word over 2^32.
constexpr double philox_uniform(uint64_t seed, uint64_t draw_idx) {
  const auto word =
      philox4x32_10({static_cast<uint32_t>(draw_idx), static_cast<uint32_t>(draw_idx >> 32), 0, 0},
                    {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)})[0];
  return word * 0x1p-32;
}

}  // namespace sinter::kernels::cpu
