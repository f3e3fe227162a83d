// Weight rows times a few columns, for decode: weight bytes are the limit, so every weight is read once,
// from global memory straight into the registers where the tensor core wants it.
//
//   a warp: 16 weight rows x 8 * kTiles columns, and of k every num_warps-th step
//   step:   4 * kLaneK along k; lane (g, t) reads 16 bytes of rows g and g + 8 and the same k of column g
//
// The warps of a block share out k; their sums are added in the order of the warps. A sum's order depends on
// K and the number of warps only, not on the other columns.
#pragma once

#include "gpu/formats.h"
#include "gpu/row_product_params.h"

namespace sinter::gpu {

template <typename X>
constexpr int kActivationParts = 1;  // bf16 that make up an activation
template <>
inline constexpr int kActivationParts<float> = 3;

// kLaneK activations of one column as pairs, in the order of Format's.
template <typename Format, typename X>
struct Activations {
  static constexpr int kWords = Format::kLaneK * static_cast<int>(sizeof(X)) / 4;
  U32 word[kWords];

  // `count` elements from x + k exist; x may be null.
  SINTER_DEVICE void load(const X* x, int k, int count, bool aligned) {
    SINTER_UNROLL
    for (int i = 0; i < kWords; ++i) word[i] = 0;
    if (x == nullptr || count <= 0) return;
    if (aligned && count >= Format::kLaneK) {
      if constexpr (kWords % 4 == 0) {
        SINTER_UNROLL
        for (int i = 0; i < kWords / 4; ++i) {
          const Line line = load_cached(reinterpret_cast<const Line*>(x + k) + i);
          SINTER_UNROLL
          for (int j = 0; j < 4; ++j) word[4 * i + j] = line.word[j];
        }
      } else {
        SINTER_UNROLL
        for (int i = 0; i < kWords; ++i) word[i] = reinterpret_cast<const U32*>(x + k)[i];
      }
      return;
    }
    if constexpr (sizeof(X) == 4) {
      SINTER_UNROLL
      for (int i = 0; i < kWords; ++i)
        if (i < count) word[i] = reinterpret_cast<const U32*>(x + k)[i];
    } else {
      SINTER_UNROLL
      for (int i = 0; i < 2 * kWords; ++i)
        if (i < count)
          word[i / 2] |= static_cast<U32>(reinterpret_cast<const U16*>(x + k)[i]) << (i % 2 * 16);
    }
  }

  SINTER_DEVICE void decode(U32 (&pairs)[kActivationParts<X>][Format::kLaneK / 2]) const {
    SINTER_UNROLL
    for (int i = 0; i < Format::kLaneK / 2; ++i) {
      // Elements `low` and `high` of pair i.
      const int low = Format::kSplitPairs ? i / 4 * 8 + i % 4 : 2 * i;
      const int high = Format::kSplitPairs ? low + 4 : low + 1;
      if constexpr (sizeof(X) == 4) {
        U32 parts[3];
        split_pair(float_of(word[low]), float_of(word[high]), parts);
        for (int part = 0; part < 3; ++part) pairs[part][i] = parts[part];
      } else if constexpr (Format::kSplitPairs) {
        pairs[0][i] = pick_bytes(word[low / 2], word[high / 2], low % 2 == 0 ? 0x5410 : 0x7632);
      } else {
        pairs[0][i] = word[i];
      }
    }
  }
};

// The weights of one step of one warp: loaded a step ahead of their use. Activations come from L1 or L2 and
// are not worth the registers.
template <typename Format, typename X, int kTiles>
struct RowStep {
  PackedLine<Format> rows[2];
  int k, count;  // this lane's columns of the weights

  // n: row of this lane or -1.
  SINTER_DEVICE void load(const Matrix& w, const I64 (&n)[2], int K, int step, bool w_aligned) {
    k = (4 * step + lane_idx() % 4) * Format::kLaneK;
    count = min_of(K - k, Format::kLaneK);
    SINTER_UNROLL
    for (int i = 0; i < 2; ++i) rows[i].load(w, n[i], K, k, count, w_aligned);
  }

  // x: this lane's column of each tile, or null.
  SINTER_DEVICE void add_to(const X* const (&x)[kTiles], bool x_aligned, float (&sums)[kTiles][4]) const {
    U32 a[2][Format::kParts][Format::kLaneK / 2];
    SINTER_UNROLL
    for (int i = 0; i < 2; ++i) rows[i].decode(a[i]);
    SINTER_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      Activations<Format, X> column;
      column.load(x[tile], k, count, x_aligned);
      U32 b[kActivationParts<X>][Format::kLaneK / 2];
      column.decode(b);
      SINTER_UNROLL
      for (int i = 0; i < Format::kLaneK / 2; i += 2) {
        SINTER_UNROLL
        for (int left = 0; left < Format::kParts; ++left) {
          const U32 rows_ab[4] = {a[0][left][i], a[1][left][i], a[0][left][i + 1], a[1][left][i + 1]};
          SINTER_UNROLL
          for (int right = 0; right < kActivationParts<X>; ++right) {
            if (left + right > 2) continue;  // under 2^-24 of the product
            const U32 pair[2] = {b[right][i], b[right][i + 1]};
            mma(sums[tile], rows_ab, pair);
          }
        }
      }
    }
  }
};

// sums[tile] += rows n0 .. n0 + 15 of `w` [N, K] times the columns, as an accumulator of m16n8k16, over this
// warp's steps. x: row of this lane's column (lane / 4) of each tile, or null where there is none.
template <typename Format, typename X, int kTiles>
SINTER_DEVICE void add_row_products(const Matrix& w, int n0, int N, int K, const X* const (&x)[kTiles],
                                    bool x_aligned, float (&sums)[kTiles][4]) {
  const int g = lane_idx() / 4;
  const I64 n[2] = {n0 + g < N ? n0 + g : -1, n0 + g + 8 < N ? n0 + g + 8 : -1};
  const bool w_aligned = is_aligned(w.data, row_bytes<Format>(K));
  const int num_steps = ceil_div(K, 4 * Format::kLaneK);
  int step = warp_idx();
  if (step >= num_steps) return;
  RowStep<Format, X, kTiles> next;
  next.load(w, n, K, step, w_aligned);
  while (step < num_steps) {
    const RowStep<Format, X, kTiles> now = next;
    const int now_step = step;
    step += num_warps();
    if (step < num_steps) next.load(w, n, K, step, w_aligned);
    if constexpr (Format::kHasTileScales) {
      float step_sums[kTiles][4] = {};
      now.add_to(x, x_aligned, step_sums);
      const float scale = static_cast<const float*>(
          w.scale)[n0 / 128 * static_cast<I64>(ceil_div(K, 128)) + now_step * 4 * Format::kLaneK / 128];
      for (int tile = 0; tile < kTiles; ++tile)
        for (int i = 0; i < 4; ++i) sums[tile][i] += scale * step_sums[tile][i];
    } else {
      now.add_to(x, x_aligned, sums);
    }
  }
}

// The same for a matrix of any format: NVRTC takes no generic lambdas, so there are two.
template <typename Format, typename X, int kTiles>
SINTER_DEVICE void add_row_products(Format, const Matrix& w, int n0, int N, int K,
                                    const X* const (&x)[kTiles], bool x_aligned, float (&sums)[kTiles][4]) {
  add_row_products<Format>(w, n0, N, K, x, x_aligned, sums);
}
template <typename X, int kTiles>
SINTER_DEVICE void add_row_products(MixedFormat, const Matrix& w, int n0, int N, int K,
                                    const X* const (&x)[kTiles], bool x_aligned, float (&sums)[kTiles][4]) {
  switch (w.format) {
    case kF32: return add_row_products<F32Format>(w, n0, N, K, x, x_aligned, sums);
    case kF16: return add_row_products<F16Format>(w, n0, N, K, x, x_aligned, sums);
    case kBF16: return add_row_products<Bf16Format>(w, n0, N, K, x, x_aligned, sums);
    case kFp8Tensor: return add_row_products<Fp8TensorFormat>(w, n0, N, K, x, x_aligned, sums);
    case kFp8Block: return add_row_products<Fp8BlockFormat>(w, n0, N, K, x, x_aligned, sums);
    case kNvfp4: return add_row_products<Nvfp4Format>(w, n0, N, K, x, x_aligned, sums);
    case kMxfp4: return add_row_products<Mxfp4Format>(w, n0, N, K, x, x_aligned, sums);
    default: return;
  }
}

// The sums of all warps of a block, through shared memory: every warp puts its own, then any thread may ask
// for a total. Element i of 16 x 8 * kTiles is row i % 16, column i / 16.
template <int kTiles>
class WarpSums {
 public:
  static constexpr int kElements = kTiles * 128;
  static constexpr int kShared = kRowWarps * kElements;  // floats

  SINTER_DEVICE explicit WarpSums(float* shared) : shared_(shared) {}

  SINTER_DEVICE void put(const float (&sums)[kTiles][4]) {
    const int g = lane_idx() / 4, t = lane_idx() % 4;
    float* own = shared_ + warp_idx() * kElements;
    SINTER_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) SINTER_UNROLL
    for (int i = 0; i < 4; ++i) own[(8 * tile + 2 * t + i % 2) * 16 + g + i / 2 * 8] = sums[tile][i];
  }
  SINTER_DEVICE float total(int element) const {
    float sum = shared_[element];
    for (int warp = 1; warp < num_warps(); ++warp) sum += shared_[warp * kElements + element];
    return sum;
  }

 private:
  float* shared_;
};

// function(row, column, sum) once for every element of the block.
template <int kTiles, typename Function>
SINTER_DEVICE void for_each_sum(const float (&sums)[kTiles][4], float* shared, const Function& function) {
  WarpSums<kTiles> all(shared);
  all.put(sums);
  sync_block();
  for (int i = thread_idx(); i < all.kElements; i += num_threads()) function(i % 16, i / 16, all.total(i));
}

}  // namespace sinter::gpu
