// Row-major formats for VDPBF16PS: the products are exact, sums are float32. Belongs inside a target region.
#pragma once

namespace sinter::kernels::cpu {
namespace {

struct DotFormat {
  using X = uint16_t;
  using W = __m512i;
  static constexpr int kStep = 32;
  static constexpr int kParts = 1;
  static constexpr int kVectors = 4;
  SINTER_INLINE static Floats multiply_add(Floats sum, W w, const X* x) {
    return Bf16Dot::multiply_add(sum, w, x);
  }
};

struct Bf16Format : DotFormat {
  static constexpr int kChunkBytes = 256;
  static constexpr int kScaleBytes = 0;
  static constexpr bool kScaled = false;
  static constexpr bool kScalePerTile = false;
  static int64_t row_bytes(int64_t K) { return K * 2; }
  static int64_t scale_row_bytes(int64_t) { return 0; }
  static int64_t scale_row(int64_t n) { return n; }
  static const uint8_t* scales(const ops::Weight&) { return nullptr; }
  static float factor(const ops::Weight&) { return 1.0f; }
  static void put16(X* x, int64_t k, const float* values) { Bf16Dot::put16(x, k, values); }
  SINTER_INLINE static void decode(const Chunk& at, int, W* w) {
    SINTER_UNROLL
    for (int v = 0; v < kVectors; ++v) w[v] = _mm512_loadu_si512(at.data + 64 * v);
  }
  SINTER_INLINE static void decode_scales(const Chunk&, Floats* scales) { scales[0] = zeros(); }
};

// Magnitudes through two tables of 128 bytes, the halves of a bf16; interleaving them orders the columns of
// 64 as 0..7 16..23 32..39 48..55 | 8..15 24..31 ...
template <bool kPerTile>
struct Fp8Format : DotFormat {
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
  static void put16(X* x, int64_t k, const float* values) {
    const __m256i halves = upper_halves(load(values));
    uint16_t* to = x + (k & ~int64_t{63}) + (k & 63) / 2;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(halves));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 32), _mm256_extracti128_si256(halves, 1));
  }

  struct Tables {
    alignas(64) uint8_t low[128], high[128];
  };
  static constexpr Tables make_tables() {
    Tables tables{};
    for (int code = 0; code < 128; ++code) {
      const uint16_t bits = code == 0x7f ? uint16_t{0x7fc0}
                                         : numerics::to_bf16(numerics::from_e4m3(static_cast<uint8_t>(code)));
      tables.low[code] = static_cast<uint8_t>(bits);
      tables.high[code] = static_cast<uint8_t>(bits >> 8);
    }
    return tables;
  }
  static constexpr Tables kTables = make_tables();

  SINTER_INLINE static void decode(const Chunk& at, int, W* w) {
    const __m512i low0 = _mm512_load_si512(kTables.low), low1 = _mm512_load_si512(kTables.low + 64);
    const __m512i high0 = _mm512_load_si512(kTables.high), high1 = _mm512_load_si512(kTables.high + 64);
    SINTER_UNROLL
    for (int half = 0; half < 2; ++half) {
      const __m512i codes = _mm512_loadu_si512(at.data + 64 * half);
      const __m512i low = _mm512_permutex2var_epi8(low0, codes, low1);
      const __m512i magnitude = _mm512_permutex2var_epi8(high0, codes, high1);
      // magnitude | (codes & 0x80)
      const __m512i high =
          _mm512_ternarylogic_epi32(magnitude, codes, _mm512_set1_epi8(static_cast<char>(0x80)), 0xf8);
      w[2 * half] = _mm512_unpacklo_epi8(low, high);
      w[2 * half + 1] = _mm512_unpackhi_epi8(low, high);
    }
  }
  SINTER_INLINE static void decode_scales(const Chunk& at, Floats* scales) {
    float value;
    std::memcpy(&value, at.scale, sizeof value);
    scales[0] = all(value);
  }
};

// What brings byte q of a qword to bits 20 to 27 of both dwords: bytes 2 and 3 from the bits at 8q - 4 and
// 8q + 4.
constexpr uint64_t multishift_of(uint64_t q) {
  const uint64_t dword = ((8 * q - 4) & 63) << 16 | ((8 * q + 4) & 63) << 24;
  return dword << 32 | dword;
}

// A load of 64 bytes is 128 columns: 32 words of four nibbles. x goes by nibble, then word.
struct Nvfp4Format : DotFormat {
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
    const __m256i order = _mm256_setr_epi16(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m256i halves = upper_halves(multiply(load(values), all(kActivationBias)));
    alignas(32) uint64_t columns[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(columns), _mm256_permutexvar_epi16(order, halves));
    uint16_t* to = x + (k & ~int64_t{127}) + (k & 127) / 4;
    for (int i = 0; i < 4; ++i) std::memcpy(to + 32 * i, &columns[i], 8);
  }
  SINTER_INLINE static void decode(const Chunk& at, int, W* w) {
    look_up_nibbles(_mm512_loadu_si512(at.data), e2m1_as_bf16(), w);
  }
  // Eight scales, each for the two dwords of its block: e4m3 bits below an exponent of 16 are scale * 2^-104.
  SINTER_INLINE static void decode_scales(const Chunk& at, Floats* scales) {
    alignas(64) static constexpr uint64_t kShifts[8] = {multishift_of(0), multishift_of(1), multishift_of(2),
                                                        multishift_of(3), multishift_of(4), multishift_of(5),
                                                        multishift_of(6), multishift_of(7)};
    uint64_t codes;
    std::memcpy(&codes, at.scale, sizeof codes);
    const __m512i bits = _mm512_multishift_epi64_epi8(_mm512_load_si512(kShifts),
                                                      _mm512_set1_epi64(static_cast<int64_t>(codes)));
    // (bits & 0x07f00000) | 0x08000000
    scales[0] = _mm512_castsi512_ps(
        _mm512_ternarylogic_epi32(bits, _mm512_set1_epi32(0x07f00000), _mm512_set1_epi32(0x08000000), 0xea));
    if (!has_subnormal_e4m3(codes)) [[likely]]
      return;
    // Zero and subnormal ones got a leading one that they do not have, and half their weight.
    const auto is_normal = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x07800000));
    const Floats rest = _mm512_sub_ps(scales[0], all(0x1p-111f));
    scales[0] = _mm512_mask_mov_ps(add(rest, rest), is_normal, scales[0]);
  }
};

}  // namespace
}  // namespace sinter::kernels::cpu
