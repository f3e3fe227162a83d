// NVFP4 packed in tiles of 16 rows x 64 columns: one line with the four scales of each row, then eight lines,
// line j with the j-th dword (eight codes) of every row. Lane = row, so there are no sums across lanes, and
// activations come as broadcast pairs. Codes are only transposed. Scales are written as e5m3, which has all
// e4m3 values as normal numbers: shifted to a float's exponent they are scale * 2^-117, and no float32
// subnormal slows down a CPU. Belongs inside a target region.
#pragma once

namespace sinter::kernels::cpu {
namespace {

// e4m3 as e5m3 without subnormals, of exponent bias 10. Scales have no sign.
constexpr uint8_t e5m3_of_e4m3(uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  if (exponent != 0) return static_cast<uint8_t>((exponent + 3) << 3 | mantissa);
  if (mantissa == 0) return 0;
  const int top = mantissa >= 4 ? 2 : mantissa >= 2 ? 1 : 0;
  return static_cast<uint8_t>((top + 1) << 3 | (mantissa << (3 - top) & 7));
}
inline constexpr std::array<uint8_t, 256> kE5m3OfE4m3 = [] {
  std::array<uint8_t, 256> table{};
  for (size_t code = 0; code < table.size(); ++code) table[code] = e5m3_of_e4m3(static_cast<uint8_t>(code));
  return table;
}();

struct Nvfp4Tile {
  using X = uint16_t;

  static constexpr int64_t kColumns = 64;
  static constexpr int64_t kBytes = 576;
  static constexpr int kBlocks = 4;  // of 16 columns, with a scale each

  struct Matrix {
    const uint8_t* data;
    int64_t N, K;
    float factor;
  };

  static Matrix matrix(const ops::Weight& weight, const uint8_t* packed) {
    return {packed, weight.N, weight.K, weight.scale_tensor * 0x1p57f};
  }
  static int64_t padded(int64_t K) { return K; }
  static bool fits(int64_t N, int64_t K) { return N % 16 == 0 && K % kColumns == 0; }
  static int64_t matrix_bytes(int64_t N, int64_t K) { return N / 16 * (K / kColumns) * kBytes; }
  static const uint8_t* address(const Matrix& w, int64_t group) {
    return w.data + group * (w.K / kColumns) * kBytes;
  }

  // Per dword, codes i and i + 4 are looked up together.
  static void put16(X* x, int64_t k, const float* values) {
    const __m256i order = _mm256_setr_epi16(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    const __m256i halves = upper_halves(multiply(load(values), all(kActivationBias)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(x + k), _mm256_permutexvar_epi16(order, halves));
  }

  // Groups of 16 rows [begin, end) of a matrix in checkpoint form.
  static void pack(const ops::Weight& weight, int64_t begin, int64_t end, uint8_t* out) {
    const auto* codes = weight.data.data_as<uint8_t>();
    const auto* scales = weight.scale.data_as<uint8_t>();
    out += begin * (weight.K / kColumns) * kBytes;
    for (int64_t row = begin * 16; row < end * 16; row += 16) {
      for (int64_t k = 0; k < weight.K; k += kColumns, out += kBytes) {
        for (int64_t lane = 0; lane < 16; ++lane) {
          for (int64_t b = 0; b < kBlocks; ++b)
            out[4 * lane + b] = kE5m3OfE4m3[scales[(row + lane) * (weight.K / 16) + k / 16 + b]];
          const uint8_t* from = codes + (row + lane) * (weight.K / 2) + k / 2;
          for (int j = 0; j < 8; ++j) std::memcpy(out + 64 + 64 * j + 4 * lane, from + 4 * j, 4);
        }
      }
    }
  }

  // out[group - begin][token][16] for groups [begin, end) and m <= kTokenBlock tokens.
  static void run(const Matrix& w, int64_t begin, int64_t end, int m, const X* const* x, float* out,
                  const Ahead& ahead) {
    static constexpr auto kFew = std::array{few<1>, few<2>, few<3>, few<4>, few<5>, few<6>, few<7>, few<8>};
    for (int64_t group = begin; group < end; ++group, out += 16 * m) {
      if (m <= 8)
        kFew[static_cast<size_t>(m - 1)](w, group, x, out, ahead);
      else
        many(w, group, m, x, out, ahead);
    }
  }

 private:
  // Byte j of every dword as a float, * 2^-117.
  template <int j>
  SINTER_INLINE static Floats scale_of(__m512i scales) {
    __m512i bits;
    if constexpr (j == 0)
      bits = _mm512_slli_epi32(scales, 20);
    else if constexpr (j == 1)
      bits = _mm512_slli_epi32(scales, 12);
    else if constexpr (j == 2)
      bits = _mm512_slli_epi32(scales, 4);
    else
      bits = _mm512_srli_epi32(scales, 4);
    return _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(0x0ff00000)));
  }

  // One block of 16 columns is in w and scale.
  template <int M>
  SINTER_INLINE static void block_sums(const __m512i* w, Floats scale, const X* const* x, int64_t k,
                                       Floats* sums) {
    SINTER_UNROLL
    for (int m = 0; m < M; ++m) {
      Floats p = zeros();
      SINTER_UNROLL
      for (int i = 0; i < 8; ++i) {
        int32_t pair;
        std::memcpy(&pair, x[m] + k + 2 * i, sizeof pair);
        p = dot_bf16(p, w[i], _mm512_set1_epi32(pair));
      }
      sums[m] = multiply_add(p, scale, sums[m]);
    }
  }

  template <int block>
  SINTER_INLINE static void decode_block(const uint8_t* tile, __m512i table, __m512i* w) {
    look_up_e2m1(_mm512_loadu_si512(tile + 64 + 128 * block), table, w);
    look_up_e2m1(_mm512_loadu_si512(tile + 128 + 128 * block), table, w + 4);
  }

  template <int M, int block>
  SINTER_INLINE static void few_block(const uint8_t* tile, const uint8_t* soon, __m512i scales, __m512i table,
                                      const X* const* x, int64_t k, Floats* sums) {
    prefetch(soon + 64 + 128 * block);
    prefetch(soon + 128 + 128 * block);
    __m512i w[8];
    decode_block<block>(tile, table, w);
    block_sums<M>(w, scale_of<block>(scales), x, k + 16 * block, sums);
  }

  template <int M>
  static void few(const Matrix& w, int64_t group, const X* const* x_in, float* out, const Ahead& ahead_in) {
    const Ahead ahead = ahead_in;
    const X* x[M];
    Floats sums[M];
    SINTER_UNROLL
    for (int m = 0; m < M; ++m) {
      x[m] = x_in[m];
      sums[m] = zeros();
    }
    const __m512i table = e2m1_table();
    const uint8_t* tile = address(w, group);
    for (int64_t k = 0; k < w.K; k += kColumns, tile += kBytes) {
      const uint8_t* soon = ahead.at(tile + kPrefetchBytes);
      prefetch(soon);
      const __m512i scales = _mm512_loadu_si512(tile);
      few_block<M, 0>(tile, soon, scales, table, x, k, sums);
      few_block<M, 1>(tile, soon, scales, table, x, k, sums);
      few_block<M, 2>(tile, soon, scales, table, x, k, sums);
      few_block<M, 3>(tile, soon, scales, table, x, k, sums);
    }
    SINTER_UNROLL
    for (int m = 0; m < M; ++m) store(out + 16 * m, multiply(sums[m], all(w.factor)));
  }

  // Decoded once for all tokens, four tiles (8 KB) at a time. The sums wait in out.
  static constexpr int kStrip = 4;
  struct Strip {
    __m512i w[kStrip * kBlocks][8];
    Floats scale[kStrip * kBlocks];
  };

  template <int block>
  SINTER_INLINE static void strip_block(const uint8_t* tile, __m512i scales, __m512i table, Strip& strip,
                                        int at) {
    decode_block<block>(tile, table, strip.w[at + block]);
    strip.scale[at + block] = scale_of<block>(scales);
  }

  template <int M>
  static void strip_sums(const Strip& strip, int num_blocks, const X* const* x_in, int64_t k, float* out) {
    const X* x[M];
    Floats sums[M];
    SINTER_UNROLL
    for (int m = 0; m < M; ++m) {
      x[m] = x_in[m];
      sums[m] = load(out + 16 * m);
    }
    for (int b = 0; b < num_blocks; ++b) block_sums<M>(strip.w[b], strip.scale[b], x, k + 16 * b, sums);
    SINTER_UNROLL
    for (int m = 0; m < M; ++m) store(out + 16 * m, sums[m]);
  }

  static void many(const Matrix& w, int64_t group, int m, const X* const* x, float* out, const Ahead& ahead) {
    static constexpr auto kSums = std::array{strip_sums<1>, strip_sums<2>, strip_sums<3>, strip_sums<4>,
                                             strip_sums<5>, strip_sums<6>, strip_sums<7>, strip_sums<8>};
    const __m512i table = e2m1_table();
    const uint8_t* tile = address(w, group);
    Strip strip;
    for (int token = 0; token < m; ++token) store(out + 16 * token, zeros());
    for (int64_t k = 0; k < w.K; k += kStrip * kColumns) {
      const int num_tiles = static_cast<int>(std::min<int64_t>(kStrip, (w.K - k) / kColumns));
      for (int i = 0; i < num_tiles; ++i, tile += kBytes) {
        const uint8_t* soon = ahead.at(tile + kPrefetchBytes);
        for (int64_t line = 0; line < kBytes; line += 64) prefetch(soon + line);
        const __m512i scales = _mm512_loadu_si512(tile);
        strip_block<0>(tile, scales, table, strip, i * kBlocks);
        strip_block<1>(tile, scales, table, strip, i * kBlocks);
        strip_block<2>(tile, scales, table, strip, i * kBlocks);
        strip_block<3>(tile, scales, table, strip, i * kBlocks);
      }
      for (int token = 0; token < m; token += 8) {
        const int tokens = std::min(8, m - token);
        kSums[static_cast<size_t>(tokens - 1)](strip, num_tiles * kBlocks, x + token, k, out + 16 * token);
      }
    }
    const Floats factor = all(w.factor);
    for (int token = 0; token < m; ++token) store(out + 16 * token, multiply(load(out + 16 * token), factor));
  }
};

}  // namespace
}  // namespace sinter::kernels::cpu
