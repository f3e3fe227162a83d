// Multiplying with packed NVFP4 (nvfp4_tile.h): a tile's codes are looked up as small numbers, multiplied
// with broadcast activations, and each block's sum is scaled once. Belongs inside a target region,
// after nvfp4_lookup_avx512.h.
//
// Arithmetic (A below): with what instruction. VDPBF16PS is exact but for float32 sums. It takes one cycle on
// a Zen 4 but 2.8 on a Xeon of 2023, where VPDPBUSD takes a half: that one wants the activations of a block
// as 16-bit integers with a common exponent, in two halves. bf16 values down to 2^-7 of the block's largest
// stay exact, others lose less than 2^-16 of it: a relative error of 2e-5 where rounding to bf16 made 2e-3.
//
// Streams: an AMD core reads one ascending run of memory best, an Intel core several; so one or A::kStreams
// groups of rows are done at once, and share the loads of activations.
#pragma once

namespace sinter::kernels::cpu {
namespace {

template <class A>
struct Nvfp4Tile {
  using X = typename A::X;

  struct Matrix {
    const uint8_t* data;
    int64_t N, K;
    float factor;
  };

  static Matrix matrix(const ops::Weight& weight, const uint8_t* packed) {
    return {packed, weight.N, weight.K, weight.scale_tensor * A::kFactor};
  }
  static int64_t matrix_bytes(int64_t N, int64_t K) { return tiled_bytes(N, K); }
  static int64_t padded(int64_t K) { return K; }
  static int64_t width(int64_t K) { return K / kTileColumns * A::kTileWidth; }
  static void put16(X* x, int64_t k, const float* values) {
    A::put_block(x + k / kTileColumns * A::kTileWidth, static_cast<int>(k % kTileColumns / 16), values);
  }
  static int64_t group_bytes(const Matrix& w) { return w.K / kTileColumns * kTileBytes; }
  static const uint8_t* address(const Matrix& w, int64_t group) { return w.data + group * group_bytes(w); }

  // out[group - begin][token][16] for groups [begin, end) and m <= kTokenBlock tokens.
  static void run(const Matrix& w, int64_t begin, int64_t end, int m, const X* const* x, float* out,
                  const Ahead& ahead) {
    static constexpr auto kFew =
        std::array{few<1, 1>, few<2, 1>, few<3, 1>, few<4, 1>, few<5, 1>, few<6, 1>, few<7, 1>, few<8, 1>};
    int64_t group = begin;
    if constexpr (A::kStreams > 1) {
      static constexpr auto kStreamed =
          std::array{few<1, A::kStreams>, few<2, A::kStreams>, few<3, A::kStreams>, few<4, A::kStreams>};
      if (m <= static_cast<int>(kStreamed.size()) && group_bytes(w) >= 2 * A::kPrefetchBytes)
        for (; group + A::kStreams <= end; group += A::kStreams, out += A::kStreams * 16 * m)
          kStreamed[static_cast<size_t>(m - 1)](w, group, x, out, ahead);
    }
    for (; group < end; ++group, out += 16 * m) {
      if (m <= static_cast<int>(kFew.size()))
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

  // A block of 16 columns is in w and scale; x at the tile.
  template <int M>
  SINTER_INLINE static void block_sums(const __m512i* w, Floats scale, const X* const* x, int64_t at,
                                       int block, Floats* sums) {
    SINTER_UNROLL
    for (int m = 0; m < M; ++m) sums[m] = multiply_add(A::block_sum(w, x[m] + at, block), scale, sums[m]);
  }

  template <int block>
  SINTER_INLINE static void decode_block(const uint8_t* tile, __m512i table, __m512i* w) {
    A::look_up(_mm512_loadu_si512(tile + 64 + 128 * block), table, w);
    A::look_up(_mm512_loadu_si512(tile + 128 + 128 * block), table, w + A::kVectors / 2);
  }

  template <int M, int block>
  SINTER_INLINE static void few_block(const uint8_t* tile, const uint8_t* soon, __m512i scales, __m512i table,
                                      const X* const* x, int64_t at, Floats* sums) {
    prefetch(soon + 64 + 128 * block);
    prefetch(soon + 128 + 128 * block);
    __m512i w[A::kVectors];
    decode_block<block>(tile, table, w);
    block_sums<M>(w, scale_of<block>(scales), x, at, block, sums);
  }

  // S groups of rows from `group` on.
  template <int M, int S>
  static void few(const Matrix& w, int64_t group, const X* const* x_in, float* out, const Ahead& ahead_in) {
    const Ahead ahead = ahead_in;
    const X* x[M];
    SINTER_UNROLL
    for (int m = 0; m < M; ++m) x[m] = x_in[m];
    Floats sums[S * M];
    SINTER_UNROLL
    for (int i = 0; i < S * M; ++i) sums[i] = zeros();
    const __m512i table = A::table();
    const int64_t stride = group_bytes(w);
    const uint8_t* tile = address(w, group);
    const int64_t jump_from = stride - A::kPrefetchBytes;  // a stream goes on S groups later
    for (int64_t at = 0, done = 0; done < stride;
         at += A::kTileWidth, done += kTileBytes, tile += kTileBytes) {
      const int64_t distance = A::kPrefetchBytes + (done < jump_from ? 0 : (S - 1) * stride);
      SINTER_UNROLL
      for (int s = 0; s < S; ++s) {
        const uint8_t* from = tile + s * stride;
        const uint8_t* soon = ahead.at(from + distance);
        prefetch(soon);
        const __m512i scales = _mm512_loadu_si512(from);
        few_block<M, 0>(from, soon, scales, table, x, at, sums + s * M);
        few_block<M, 1>(from, soon, scales, table, x, at, sums + s * M);
        few_block<M, 2>(from, soon, scales, table, x, at, sums + s * M);
        few_block<M, 3>(from, soon, scales, table, x, at, sums + s * M);
      }
    }
    SINTER_UNROLL
    for (int i = 0; i < S * M; ++i) store(out + 16 * i, multiply(sums[i], all(w.factor)));
  }

  // Decoded once for all tokens, four tiles (8 KB as 16-bit numbers) at a time. The sums wait in out.
  static constexpr int kStrip = 4;
  struct Strip {
    __m512i w[kStrip * kTileBlocks][A::kVectors];
    Floats scale[kStrip * kTileBlocks];
  };

  template <int block>
  SINTER_INLINE static void strip_block(const uint8_t* tile, __m512i scales, __m512i table, Strip& strip,
                                        int at) {
    decode_block<block>(tile, table, strip.w[at + block]);
    strip.scale[at + block] = scale_of<block>(scales);
  }

  template <int M>
  static void strip_sums(const Strip& strip, int num_blocks, const X* const* x_in, int64_t at, float* out) {
    const X* x[M];
    Floats sums[M];
    SINTER_UNROLL
    for (int m = 0; m < M; ++m) {
      x[m] = x_in[m];
      sums[m] = load(out + 16 * m);
    }
    for (int b = 0; b < num_blocks; ++b)
      block_sums<M>(strip.w[b], strip.scale[b], x, at + b / kTileBlocks * A::kTileWidth, b % kTileBlocks,
                    sums);
    SINTER_UNROLL
    for (int m = 0; m < M; ++m) store(out + 16 * m, sums[m]);
  }

  static void many(const Matrix& w, int64_t group, int m, const X* const* x, float* out, const Ahead& ahead) {
    static constexpr auto kSums = std::array{strip_sums<1>, strip_sums<2>, strip_sums<3>, strip_sums<4>,
                                             strip_sums<5>, strip_sums<6>, strip_sums<7>, strip_sums<8>};
    const __m512i table = A::table();
    const uint8_t* tile = address(w, group);
    Strip strip;
    for (int token = 0; token < m; ++token) store(out + 16 * token, zeros());
    for (int64_t k = 0; k < w.K; k += kStrip * kTileColumns) {
      const int num_tiles = static_cast<int>(std::min<int64_t>(kStrip, (w.K - k) / kTileColumns));
      for (int i = 0; i < num_tiles; ++i, tile += kTileBytes) {
        const uint8_t* soon = ahead.at(tile + A::kPrefetchBytes);
        for (int64_t line = 0; line < kTileBytes; line += 64) prefetch(soon + line);
        const __m512i scales = _mm512_loadu_si512(tile);
        strip_block<0>(tile, scales, table, strip, i * kTileBlocks);
        strip_block<1>(tile, scales, table, strip, i * kTileBlocks);
        strip_block<2>(tile, scales, table, strip, i * kTileBlocks);
        strip_block<3>(tile, scales, table, strip, i * kTileBlocks);
      }
      for (int token = 0; token < m; token += 8) {
        const int tokens = std::min(8, m - token);
        kSums[static_cast<size_t>(tokens - 1)](strip, num_tiles * kTileBlocks, x + token, width(k),
                                               out + 16 * token);
      }
    }
    const Floats factor = all(w.factor);
    for (int token = 0; token < m; ++token) store(out + 16 * token, multiply(load(out + 16 * token), factor));
  }
};

}  // namespace
}  // namespace sinter::kernels::cpu
