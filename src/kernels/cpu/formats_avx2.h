// Row-major formats in float32 FMAs. Belongs inside a target region.
#pragma once

namespace sinter::kernels::cpu {
namespace {

// Arithmetic on subnormal floats costs an Intel CPU 160 cycles: nothing may come near them. Activations carry
// 2^60; scales are floats made of their bits, with a bias of their own.
inline constexpr float kActivationBias = 0x1p60f;

struct FmaFormat {
  using X = float;
  using W = Floats;
  static constexpr int kStep = 8;
  static constexpr int kParts = 4;  // of a chunk of 128 columns
  static constexpr int kVectors = 4;
  SINTER_INLINE static Floats multiply_add(Floats sum, W w, const X* x) {
    return cpu::multiply_add(w, load(x), sum);
  }
  static void put16(X* x, int64_t k, const float* values) { std::memcpy(x + k, values, 16 * sizeof *x); }
};

struct Bf16Format : FmaFormat {
  static constexpr int kChunkBytes = 256;
  static constexpr int kScaleBytes = 0;
  static constexpr bool kScaled = false;
  static constexpr bool kScalePerTile = false;
  static int64_t row_bytes(int64_t K) { return K * 2; }
  static int64_t scale_row_bytes(int64_t) { return 0; }
  static int64_t scale_row(int64_t n) { return n; }
  static const uint8_t* scales(const ops::Weight&) { return nullptr; }
  static float factor(const ops::Weight&) { return 1.0f; }
  SINTER_INLINE static void decode(const Chunk& at, int part, W* w) {
    SINTER_UNROLL
    for (int v = 0; v < kVectors; ++v)
      w[v] = load_bf16(reinterpret_cast<const uint16_t*>(at.data + 64 * part + 16 * v));
  }
  SINTER_INLINE static void decode_scales(const Chunk&, Floats* scales) {
    SINTER_UNROLL
    for (int part = 0; part < kParts; ++part) scales[part] = zeros();
  }
};

// e4m3 has the exponent of fp16 cut at the top: shifted into place it is the value * 2^-8, subnormal or not.
template <bool kPerTile>
struct Fp8Format : FmaFormat {
  static constexpr int kChunkBytes = 128;
  static constexpr int kScaleBytes = kPerTile ? 4 : 0;
  static constexpr bool kScaled = true;
  static constexpr bool kScalePerTile = true;
  static int64_t row_bytes(int64_t K) { return K; }
  static int64_t scale_row_bytes(int64_t K) { return kPerTile ? numerics::num_fp8_tiles(K) * 4 : 0; }
  static int64_t scale_row(int64_t n) { return n / numerics::kFp8Tile; }
  static const uint8_t* scales(const ops::Weight& weight) {
    if constexpr (kPerTile) return static_cast<const uint8_t*>(weight.scale.data());
    return reinterpret_cast<const uint8_t*>(&weight.scale_tensor);
  }
  static float factor(const ops::Weight&) { return 1.0f; }
  SINTER_INLINE static void decode(const Chunk& at, int part, W* w) {
    SINTER_UNROLL
    for (int v = 0; v < kVectors; v += 2) {
      const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at.data + 32 * part + 8 * v));
      const __m256i shifted = _mm256_slli_epi16(_mm256_cvtepi8_epi16(codes), 7);
      const __m256i magnitude = _mm256_and_si256(shifted, _mm256_set1_epi16(0x3f80));
      const __m256i sign = _mm256_and_si256(shifted, _mm256_set1_epi16(static_cast<int16_t>(0x8000)));
      // The code of all ones is NaN: adding one to it alone sets the missing top bit of the exponent.
      const __m256i top =
          _mm256_and_si256(_mm256_add_epi16(magnitude, _mm256_set1_epi16(0x0080)), _mm256_set1_epi16(0x4000));
      const __m256i halves = _mm256_or_si256(_mm256_or_si256(sign, magnitude), top);
      w[v] = _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
      w[v + 1] = _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1));
    }
  }
  SINTER_INLINE static void decode_scales(const Chunk& at, Floats* scales) {
    float value;
    std::memcpy(&value, at.scale, sizeof value);
    SINTER_UNROLL
    for (int part = 0; part < kParts; ++part) scales[part] = all(value * 256.0f);
  }
};

// 32 bytes are 64 columns. Two byte look-ups give the halves of bf16 words; a float vector is every other
// word, so it holds columns of stride 4 of one block in its lower lanes and of the block after next in its
// upper ones.
struct Nvfp4Format : FmaFormat {
  static constexpr int kChunkBytes = 64;
  static constexpr int kScaleBytes = 8;
  static constexpr bool kScaled = true;
  static constexpr bool kScalePerTile = false;
  static int64_t row_bytes(int64_t K) { return K / 2; }
  static int64_t scale_row_bytes(int64_t K) { return K / 16; }
  static int64_t scale_row(int64_t n) { return n; }
  static const uint8_t* scales(const ops::Weight& weight) {
    return static_cast<const uint8_t*>(weight.scale.data());
  }
  static float factor(const ops::Weight& weight) { return weight.scale_tensor * 0x1p44f; }
  static void put16(X* x, int64_t k, const float* values) {
    static constexpr int kFirst[4] = {0, 2, 1, 3};
    const int64_t half = k & ~int64_t{63}, block = (k & 63) / 16;
    float* to = x + half + block % 2 * 32 + block / 2 * 4;
    for (int v = 0; v < 4; ++v)
      for (int i = 0; i < 4; ++i) to[8 * v + i] = values[kFirst[v] + 4 * i] * kActivationBias;
  }
  SINTER_INLINE static void decode(const Chunk& at, int part, W* w) {
    // Of 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
    const __m256i low_table = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 0, static_cast<char>(0x80), static_cast<char>(0xc0), 0, 0x40,
                      static_cast<char>(0x80), static_cast<char>(0xc0), 0, 0, static_cast<char>(0x80),
                      static_cast<char>(0xc0), 0, 0x40, static_cast<char>(0x80), static_cast<char>(0xc0)));
    const __m256i high_table = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 0x3f, 0x3f, 0x3f, 0x40, 0x40, 0x40, 0x40, static_cast<char>(0x80), static_cast<char>(0xbf),
        static_cast<char>(0xbf), static_cast<char>(0xbf), static_cast<char>(0xc0), static_cast<char>(0xc0),
        static_cast<char>(0xc0), static_cast<char>(0xc0)));
    const __m256i nibble = _mm256_set1_epi8(0x0f);
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at.data + 32 * (part / 2)));
    const __m256i codes[2] = {_mm256_and_si256(bytes, nibble),
                              _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble)};
    SINTER_UNROLL
    for (int i = 0; i < 2; ++i) {
      const __m256i low = _mm256_shuffle_epi8(low_table, codes[i]);
      const __m256i high = _mm256_shuffle_epi8(high_table, codes[i]);
      const __m256i words = part % 2 == 0 ? _mm256_unpacklo_epi8(low, high) : _mm256_unpackhi_epi8(low, high);
      w[2 * i] = _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
      w[2 * i + 1] =
          _mm256_castsi256_ps(_mm256_and_si256(words, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
    }
  }
  // Eight scales as floats, then each part's two spread out. e4m3 bits below an exponent of 16 are
  // scale * 2^-104; a sign, which scales do not have, would be lost under it.
  SINTER_INLINE static void decode_scales(const Chunk& at, Floats* scales) {
    uint64_t codes;
    std::memcpy(&codes, at.scale, sizeof codes);
    const __m256i bits =
        _mm256_slli_epi32(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(codes))), 20);
    Floats values = _mm256_castsi256_ps(_mm256_or_si256(bits, _mm256_set1_epi32(0x08000000)));
    if (has_subnormal_e4m3(codes)) [[unlikely]] {
      // Zero and subnormal ones got a leading one that they do not have, and half their weight.
      const __m256i exponent = _mm256_and_si256(bits, _mm256_set1_epi32(0x07800000));
      const __m256i is_subnormal = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
      const Floats rest = _mm256_sub_ps(values, all(0x1p-111f));
      values = _mm256_blendv_ps(values, add(rest, rest), _mm256_castsi256_ps(is_subnormal));
    }
    SINTER_UNROLL
    for (int part = 0; part < kParts; ++part) {
      const int block = part / 2 * 4 + part % 2;
      const __m256i order =
          _mm256_setr_epi32(block, block, block, block, block + 2, block + 2, block + 2, block + 2);
      scales[part] = _mm256_permutevar8x32_ps(values, order);
    }
  }
};

}  // namespace
}  // namespace sinter::kernels::cpu
