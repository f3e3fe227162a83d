// Matrices as a checkpoint stores them, row by row, against a few or many tokens. Belongs inside a target
// region, after simd_<isa>.h.
//
// A Format tells how 128 columns of a row (a chunk) become registers: kParts parts of kVectors vectors, each
// part with one vector of scales. Per part the products are summed first and scaled once:
//
//   sum[row, token] += scale[part] * (w0 * x0 + w1 * x1 + ..)
//
// Every variant below does just this in the same order, so a token's result does not depend on its
// neighbours. Sixteen rows end in one transposing sum.
#pragma once

namespace sinter::kernels::cpu {
namespace {

inline constexpr int64_t kChunk = 128;
inline constexpr int kGroup = 16;       // rows that are handed out together
inline constexpr int kTokenBlock = 64;  // tokens of one call: their sums are kept on the stack

struct Chunk {
  const uint8_t* data;
  const uint8_t* scale;
};

template <class F>
struct RowMajor {
  using Format = F;
  using X = typename F::X;
  using W = typename F::W;

  struct Matrix {
    const uint8_t* data;
    const uint8_t* scale;
    int64_t N, K;
    float factor;  // of every result

    // Rows past the last one repeat it: a group is always whole, the caller drops the surplus.
    Chunk row(int64_t n) const {
      n = std::min(n, N - 1);
      return {data + F::row_bytes(K) * n, scale + F::scale_row_bytes(K) * F::scale_row(n)};
    }
  };

  static Matrix matrix(const ops::Weight& weight, const uint8_t*) {
    return {static_cast<const uint8_t*>(weight.data.data()), F::scales(weight), weight.N, weight.K,
            F::factor(weight)};
  }
  static int64_t matrix_bytes(int64_t, int64_t) { return 0; }  // in a packed buffer

  // Columns of a prepared row, filled up with zeros, and the X that they take.
  static int64_t padded(int64_t K) { return (K + kChunk - 1) / kChunk * kChunk; }
  static int64_t width(int64_t K) { return padded(K); }
  static void put16(X* x, int64_t k, const float* values) { F::put16(x, k, values); }
  static const uint8_t* address(const Matrix& w, int64_t group) {
    return w.data + F::row_bytes(w.K) * group * kGroup;
  }

  // out[group - begin][token][16] for groups [begin, end) and m <= kTokenBlock tokens.
  static void run(const Matrix& w, int64_t begin, int64_t end, int m, const X* const* x, float* out,
                  const Ahead& ahead) {
    static constexpr auto kFew = std::array{few<1>, few<2>, few<3>, few<4>};
    for (int64_t group = begin; group < end; ++group, out += kGroup * m) {
      if (m <= 4)
        kFew[static_cast<size_t>(m - 1)](w, group * kGroup, x, out, ahead);
      else
        many(w, group * kGroup, m, x, out, ahead);
    }
  }

 private:
  SINTER_INLINE static Chunk chunk(const Chunk& row, int64_t c) {
    return {row.data + c * F::kChunkBytes, row.scale + c * F::kScaleBytes};
  }

  // The cut chunk at the end of a row, filled up with zeros.
  struct Tail {
    uint8_t data[F::kChunkBytes] = {};
    uint8_t scale[F::kScaleBytes + 8] = {};

    Chunk fill(const Chunk& last, int64_t columns) {
      std::memcpy(data, last.data, static_cast<size_t>(columns * F::kChunkBytes / kChunk));
      if (F::kScalePerTile) return {data, last.scale};
      std::memcpy(scale, last.scale, static_cast<size_t>(columns * F::kScaleBytes / kChunk));
      return {data, scale};
    }
  };

  // One part of R rows is in w and scale; x at the chunk.
  template <int M>
  SINTER_INLINE static void part_sums(const W* w, Floats scale, const X* const* x, int64_t at, Floats* sums) {
    SINTER_UNROLL
    for (int m = 0; m < M; ++m) {
      Floats p = zeros();
      SINTER_UNROLL
      for (int v = 0; v < F::kVectors; ++v) p = F::multiply_add(p, w[v], x[m] + at + v * F::kStep);
      sums[m] = F::kScaled ? multiply_add(p, scale, sums[m]) : add(p, sums[m]);
    }
  }

  template <int M>
  SINTER_INLINE static void chunk_sums(const Chunk& at, const X* const* x, int64_t column, Floats* sums) {
    Floats scales[F::kParts];
    F::decode_scales(at, scales);
    SINTER_UNROLL
    for (int part = 0; part < F::kParts; ++part) {
      W w[F::kVectors];
      F::decode(at, part, w);
      part_sums<M>(w, scales[part], x, column + part * F::kVectors * F::kStep, sums);
    }
  }

  // Decoding as it goes. One ascending stream of memory for one or two tokens; two rows share the loads of
  // activations where there are more.
  template <int M>
  static void few(const Matrix& w, int64_t row, const X* const* x, float* out, const Ahead& ahead) {
    constexpr int R = M <= 2 ? 1 : 2;
    const int64_t num_chunks = w.K / kChunk, cut = w.K % kChunk;
    const int64_t distance = std::max(kPrefetchBytes, R * F::row_bytes(w.K));
    Floats sums[M][kGroup];
    for (int r = 0; r < kGroup; r += R) {
      Chunk rows[R];
      Floats acc[R][M];
      SINTER_UNROLL
      for (int i = 0; i < R; ++i) {
        rows[i] = w.row(row + r + i);
        SINTER_UNROLL
        for (int m = 0; m < M; ++m) acc[i][m] = zeros();
      }
      for (int64_t c = 0; c < num_chunks; ++c) {
        SINTER_UNROLL
        for (int i = 0; i < R; ++i) {
          const Chunk at = chunk(rows[i], c);
          SINTER_UNROLL
          for (int line = 0; line < F::kChunkBytes; line += 64) prefetch(ahead.at(at.data + distance) + line);
          if (F::kScaleBytes >= 8 && c % 8 == 0) prefetch(at.scale + distance / 8);
          chunk_sums<M>(at, x, c * kChunk, acc[i]);
        }
      }
      if (cut != 0) {
        for (int i = 0; i < R; ++i) {
          Tail tail;
          chunk_sums<M>(tail.fill(chunk(rows[i], num_chunks), cut), x, num_chunks * kChunk, acc[i]);
        }
      }
      SINTER_UNROLL
      for (int m = 0; m < M; ++m) {
        SINTER_UNROLL
        for (int i = 0; i < R; ++i) sums[m][r + i] = acc[i][m];
      }
    }
    for (int m = 0; m < M; ++m) store_sums_of_16(sums[m], w.factor, out + kGroup * m);
  }

  // Decoded once for all tokens: two rows of up to kStrip chunks at a time.
  static constexpr int kStrip = 16;
  static constexpr int kPair = 2;
  struct Strip {
    W w[kPair][kStrip][F::kParts][F::kVectors];
    Floats scale[kPair][kStrip][F::kParts];
  };

  template <int M>
  static void strip_sums(const Strip& strip, int num_chunks, const X* const* x, int64_t column, int r,
                         Floats (*sums)[kGroup]) {
    Floats acc[kPair][M];
    SINTER_UNROLL
    for (int i = 0; i < kPair; ++i) {
      SINTER_UNROLL
      for (int m = 0; m < M; ++m) acc[i][m] = sums[m][r + i];
    }
    for (int c = 0; c < num_chunks; ++c) {
      SINTER_UNROLL
      for (int part = 0; part < F::kParts; ++part) {
        SINTER_UNROLL
        for (int i = 0; i < kPair; ++i)
          part_sums<M>(strip.w[i][c][part], strip.scale[i][c][part], x,
                       column + c * kChunk + part * F::kVectors * F::kStep, acc[i]);
      }
    }
    SINTER_UNROLL
    for (int i = 0; i < kPair; ++i) {
      SINTER_UNROLL
      for (int m = 0; m < M; ++m) sums[m][r + i] = acc[i][m];
    }
  }

  static void many(const Matrix& w, int64_t row, int m, const X* const* x, float* out, const Ahead& ahead) {
    static constexpr auto kSums = std::array{strip_sums<1>, strip_sums<2>, strip_sums<3>, strip_sums<4>};
    const int64_t num_chunks = (w.K + kChunk - 1) / kChunk;
    const int64_t cut = w.K % kChunk;
    const int64_t distance = std::max(kPrefetchBytes, kPair * F::row_bytes(w.K));
    Floats sums[kTokenBlock][kGroup];
    Strip strip;
    for (int token = 0; token < m; ++token)
      for (Floats& sum : sums[token]) sum = zeros();
    for (int r = 0; r < kGroup; r += kPair) {
      for (int64_t begin = 0; begin < num_chunks; begin += kStrip) {
        const int count = static_cast<int>(std::min<int64_t>(kStrip, num_chunks - begin));
        for (int i = 0; i < kPair; ++i) {
          const Chunk whole = w.row(row + r + i);
          for (int c = 0; c < count; ++c) {
            Chunk at = chunk(whole, begin + c);
            Tail tail;
            if (cut != 0 && begin + c == num_chunks - 1) at = tail.fill(at, cut);
            SINTER_UNROLL
            for (int line = 0; line < F::kChunkBytes; line += 64)
              prefetch(ahead.at(chunk(whole, begin + c).data + distance) + line);
            F::decode_scales(at, strip.scale[i][c]);
            SINTER_UNROLL
            for (int part = 0; part < F::kParts; ++part) F::decode(at, part, strip.w[i][c][part]);
          }
        }
        for (int token = 0; token < m; token += 4) {
          const int tokens = std::min(4, m - token);
          kSums[static_cast<size_t>(tokens - 1)](strip, count, x + token, begin * kChunk, r, sums + token);
        }
      }
    }
    for (int token = 0; token < m; ++token) store_sums_of_16(sums[token], w.factor, out + kGroup * token);
  }
};

}  // namespace
}  // namespace sinter::kernels::cpu
