// Packed NVFP4 by VPDPWSSD: activations of a block as 16-bit integers with a common power of two. Belongs
// inside a target region, before nvfp4_tile_avx512.h.
#pragma once

namespace sinter::kernels::cpu {
namespace {

struct Int16Pairs {
  using X = int16_t;
  static constexpr int kTileWidth = 64 + 2 * kTileBlocks;  // 64 integers, then four floats
  // Takes back the 2^40 of the powers, the 2^-117 of the scales and the 2 of the table.
  static constexpr float kFactor = 0x1p76f;

  SINTER_INLINE static __m512i table() { return twice_e2m1(); }

  // integer = x * 2^(14 - e) for e the exponent of the largest; power = 2^(e - 14 + 40).
  static void put_block(X* x, int block, const float* values) {
    const int exponent = std::max(largest_bits(load(values)) >> 23, 27);  // under 2^-100 all rounds to zero
    const bool is_usable = exponent <= 228;  // 2^101; infinities and NaN are above
    const float factor = std::bit_cast<float>(is_usable ? (268 - exponent) << 23 : 0);
    const float power = std::bit_cast<float>(is_usable ? (exponent + 26) << 23 : 0x7fc00000);
    const __m512i integers = _mm512_cvtps_epi32(multiply(load(values), all(factor)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(x + 16 * block),
                        _mm256_permutexvar_epi16(pair_order(), _mm512_cvtepi32_epi16(integers)));
    std::memcpy(x + 64 + 2 * block, &power, sizeof power);
  }

  // Of the magnitudes, as an integer: NaN is the largest of all.
  SINTER_INLINE static int32_t largest_bits(Floats values) {
    const __m512i bits = _mm512_and_si512(_mm512_castps_si512(values), _mm512_set1_epi32(0x7fffffff));
    const __m256i eight = _mm256_max_epi32(_mm512_castsi512_si256(bits), _mm512_extracti64x4_epi64(bits, 1));
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1));
    return _mm_cvtsi128_si32(four);
  }

  // Sixteen products of at most 12 * 32640 fit the 24 bits of a float.
  SINTER_INLINE static Floats block_sum(const __m512i* w, const X* x, int block) {
    __m512i sum = _mm512_setzero_si512();
    SINTER_UNROLL
    for (int i = 0; i < 8; ++i) sum = _mm512_dpwssd_epi32(sum, w[i], broadcast_pair(x + 16 * block + 2 * i));
    float power;
    std::memcpy(&power, x + 64 + 2 * block, sizeof power);
    return multiply(_mm512_cvtepi32_ps(sum), all(power));
  }
};

}  // namespace
}  // namespace sinter::kernels::cpu
