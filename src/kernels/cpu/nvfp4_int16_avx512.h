// Packed NVFP4 by VPDPBUSD: activations of a block as 16-bit integers with a common power of two, in two
// halves of 8 bits. Belongs inside a target region, before nvfp4_tile_avx512.h.
#pragma once

namespace sinter::kernels::cpu {
namespace {

// VPDPBUSD multiplies unsigned weights with signed activations, so a weight is looked up as 2 * e2m1 + 12 and
// sums start at -12 times the sum of the activations.
struct Int16Halves {
  using X = int8_t;
  static constexpr int kVectors = 4;  // that the weights of a block become
  // Four times a block's 16 integers in halves, then four times the start of its sum and its power.
  static constexpr int kTileWidth = 2 * 64 + 8 * kTileBlocks;
  // Takes back the 2^40 of the powers, the 2^-117 of the scales and the 2 of the table.
  static constexpr float kFactor = 0x1p76f;
  static constexpr int kStreams = 4;
  static constexpr int64_t kPrefetchBytes = 4096;

  SINTER_INLINE static __m512i table() {
    return _mm512_broadcast_i32x4(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
  }

  // The table of 16 comes four times: bits 4 and 5 of an index have no meaning, and need no mask.
  SINTER_INLINE static void look_up(__m512i codes, __m512i table, __m512i* w) {
    w[0] = _mm512_permutexvar_epi8(codes, table);
    w[1] = _mm512_permutexvar_epi8(_mm512_srli_epi16(codes, 4), table);
  }

  // integer = x * 2^(14 - e) for e the exponent of the largest; power = 2^(e - 14 + 40). The clamp makes the
  // upper half of 32640 fit: 2^-15 of it.
  static void put_block(X* x, int block, const float* values) {
    const int exponent = std::max(largest_bits(load(values)) >> 23, 27);  // under 2^-100 all rounds to zero
    const bool is_usable = exponent <= 205;  // 2^78; sums of more, infinities and NaN become NaN
    const Floats factor = all(std::bit_cast<float>((268 - exponent) << 23));
    const float power = std::bit_cast<float>(is_usable ? (exponent + 26) << 23 : 0x7fc00000);
    __m256i integers = _mm256_setzero_si256();
    if (is_usable) integers = _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(multiply(load(values), factor)));
    integers = _mm256_min_epi16(integers, _mm256_set1_epi16(32639));
    // The lower half is signed too, and the upper one makes up for it.
    const __m256i borrowed = _mm256_and_si256(integers, _mm256_set1_epi16(0x80));
    const __m256i halves = _mm256_add_epi16(integers, _mm256_add_epi16(borrowed, borrowed));
    // Of each eight, first the upper halves, then the lower ones; four codes of even place before those of
    // odd.
    const __m256i order =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(1, 5, 9, 13, 3, 7, 11, 15, 0, 4, 8, 12, 2, 6, 10, 14));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(x + 32 * block), _mm256_shuffle_epi8(halves, order));
    const int32_t start = sum(_mm256_madd_epi16(integers, _mm256_set1_epi16(-12)));
    std::memcpy(x + 128 + 8 * block, &start, sizeof start);
    std::memcpy(x + 132 + 8 * block, &power, sizeof power);
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

  SINTER_INLINE static int32_t sum(__m256i eight) {
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
    return _mm_cvtsi128_si32(four);
  }

  // Sixteen products of at most 12 * 32640 fit the 24 bits of a float.
  SINTER_INLINE static Floats block_sum(const __m512i* w, const X* x, int block) {
    __m512i high = _mm512_setzero_si512(), low = broadcast_dword(x + 128 + 8 * block);
    SINTER_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      const X* halves = x + 32 * block + 16 * (i / 2) + 4 * (i % 2);
      high = _mm512_dpbusd_epi32(high, w[i], broadcast_dword(halves));
      low = _mm512_dpbusd_epi32(low, w[i], broadcast_dword(halves + 8));
    }
    float power;
    std::memcpy(&power, x + 132 + 8 * block, sizeof power);
    return multiply(_mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(high, 8), low)), all(power));
  }
};

}  // namespace
}  // namespace sinter::kernels::cpu
