// Fast random numbers, the same on every machine: xoshiro256** of Blackman and Vigna, seeded by SplitMix64.
#pragma once

#include <bit>
#include <cstdint>

namespace sinter::measure {

class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15;
      uint64_t mixed = seed;
      mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
      mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
      word = mixed ^ mixed >> 31;
    }
  }

  uint64_t next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }
  // In [0, bound). The bias is far below what a test could see.
  int64_t below(int64_t bound) { return static_cast<int64_t>(next() >> 32) * bound >> 32; }
  float uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(next() >> 40) * 0x1p-24f;
  }
  bool one_in(int64_t count) { return below(count) == 0; }

 private:
  uint64_t state_[4];
};

}  // namespace sinter::measure
