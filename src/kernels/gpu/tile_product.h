// A tile of weight rows times many columns, for prefill: weights become bf16 in shared memory, once for all
// columns of the block, while the next ones and the next activations are on their way.
//
//   block: 128 rows x kColumns, 8 warps as 4 x 2, each 32 rows x kColumns / 2
//   step:  64 along k, two stages, one barrier
#pragma once

#include "gpu/copy.h"
#include "gpu/formats.h"
#include "gpu/tile_product_params.h"

namespace sinter::gpu {

// Pairs of one line in natural order.
template <typename Format>
SINTER_DEVICE void natural_pairs(const PackedLine<Format>& packed, U32 (&natural)[Format::kLaneK / 2]) {
  U32 pairs[1][Format::kLaneK / 2];
  packed.decode(pairs);
  if constexpr (Format::kSplitPairs) {
    SINTER_UNROLL
    for (int i = 0; i < Format::kLaneK / 2; i += 4) {
      natural[i] = pick_bytes(pairs[0][i], pairs[0][i + 1], 0x5410);
      natural[i + 1] = pick_bytes(pairs[0][i + 2], pairs[0][i + 3], 0x5410);
      natural[i + 2] = pick_bytes(pairs[0][i], pairs[0][i + 1], 0x7632);
      natural[i + 3] = pick_bytes(pairs[0][i + 2], pairs[0][i + 3], 0x7632);
    }
  } else {
    SINTER_UNROLL
    for (int i = 0; i < Format::kLaneK / 2; ++i) natural[i] = pairs[0][i];
  }
}

// Which matrix a row of the tile belongs to, and its row there; n < 0: none, its products are zero.
struct TileRow {
  Matrix matrix;
  int n;
};

template <typename Format, int kColumns>
class TileProduct {
  static_assert(Format::kParts == 1, "weights that are one bf16");

 public:
  static constexpr int kColumnTiles = kColumns / 16;  // of 8 columns, of a warp
  using Sums = float[2][kColumnTiles][4];             // two row tiles of 16

  SINTER_DEVICE TileProduct(unsigned char* shared, int K) : shared_(shared), K_(K) {}

  // Row and column in the tile of element i of sums[row_tile][column_tile].
  static SINTER_DEVICE int row_of(int row_tile, int i) {
    return warp_idx() / 2 * 32 + row_tile * 16 + lane_idx() / 4 + i / 2 * 8;
  }
  static SINTER_DEVICE int column_of(int column_tile, int i) {
    return warp_idx() % 2 * (kColumns / 2) + column_tile * 8 + lane_idx() % 4 * 2 + i % 2;
  }

  // sums = rows times columns. rows(r): TileRow, r < 128, the same matrix and the same 128 rows of it for 16
  // neighbours; columns(c): row of activations, c < kColumns, or null.
  template <typename Rows, typename Columns>
  SINTER_DEVICE void run(const Rows& rows, const Columns& columns, bool x_aligned, Sums& sums) {
    const Bf16* x[kCopies];
    SINTER_UNROLL
    for (int i = 0; i < kCopies; ++i) x[i] = columns((i * kTileThreads + thread_idx()) / kLinesOfColumn);
    const int num_steps = ceil_div(K_, kTileK);
    PackedLine<Format> packed[kLoads];
    load_rows(rows, 0, packed);
    copy_columns(x, x_aligned, 0);
    for (int step = 0; step < num_steps; ++step) {
      store_rows(packed, step);
      wait_copies<0>();
      // The stage is whole, and nobody reads the other one any more.
      sync_block();
      if (step + 1 < num_steps) {
        load_rows(rows, step + 1, packed);
        copy_columns(x, x_aligned, step + 1);
      }
      if constexpr (Format::kHasTileScales) {
        Sums step_sums = {};
        multiply(step, step_sums);
        SINTER_UNROLL
        for (int i = 0; i < 2; ++i) {
          const TileRow row = rows(warp_idx() / 2 * 32 + i * 16);
          const I64 scale_idx = row.n / 128 * static_cast<I64>(ceil_div(K_, 128)) + step * kTileK / 128;
          const float scale = row.n < 0 ? 0.0f : static_cast<const float*>(row.matrix.scale)[scale_idx];
          SINTER_UNROLL
          for (int j = 0; j < kColumnTiles; ++j) SINTER_UNROLL
          for (int k = 0; k < 4; ++k) sums[i][j][k] += scale * step_sums[i][j][k];
        }
      } else {
        multiply(step, sums);
      }
    }
  }

 private:
  static constexpr int kLinesOfRow = kTileK / Format::kLaneK;
  static constexpr int kLoads = kTileRows * kLinesOfRow / kTileThreads;
  static constexpr int kLinesOfColumn = kTileK / 8;
  static constexpr int kCopies = kColumns * kLinesOfColumn / kTileThreads;

  SINTER_DEVICE unsigned char* row_tile(int step) const {
    return shared_ + step % kTileStages * (kTileRows + kColumns) * kTileRowBytes;
  }
  SINTER_DEVICE unsigned char* column_tile(int step) const {
    return row_tile(step) + kTileRows * kTileRowBytes;
  }

  template <typename Rows>
  SINTER_DEVICE void load_rows(const Rows& rows, int step, PackedLine<Format> (&packed)[kLoads]) const {
    SINTER_UNROLL
    for (int i = 0; i < kLoads; ++i) {
      const int line = i * kTileThreads + thread_idx();
      const TileRow row = rows(line / kLinesOfRow);
      const int k = step * kTileK + line % kLinesOfRow * Format::kLaneK;
      packed[i].load(row.matrix, row.n, K_, k, min_of(K_ - k, Format::kLaneK),
                     is_aligned(row.matrix.data, row_bytes<Format>(K_)));
    }
  }

  SINTER_DEVICE void store_rows(const PackedLine<Format> (&packed)[kLoads], int step) const {
    SINTER_UNROLL
    for (int i = 0; i < kLoads; ++i) {
      const int line = i * kTileThreads + thread_idx();
      U32 pairs[Format::kLaneK / 2];
      natural_pairs(packed[i], pairs);
      Line* target = reinterpret_cast<Line*>(row_tile(step) + line / kLinesOfRow * kTileRowBytes +
                                             line % kLinesOfRow * Format::kLaneK * 2);
      SINTER_UNROLL
      for (int j = 0; j < Format::kLaneK / 8; ++j)
        target[j] = {{pairs[4 * j], pairs[4 * j + 1], pairs[4 * j + 2], pairs[4 * j + 3]}};
    }
  }

  SINTER_DEVICE void copy_columns(const Bf16* const (&x)[kCopies], bool x_aligned, int step) const {
    SINTER_UNROLL
    for (int i = 0; i < kCopies; ++i) {
      const int line = i * kTileThreads + thread_idx();
      const int k = step * kTileK + line % kLinesOfColumn * 8;
      const int count = x[i] == nullptr ? 0 : max_of(min_of(K_ - k, 8), 0);
      unsigned char* target =
          column_tile(step) + line / kLinesOfColumn * kTileRowBytes + line % kLinesOfColumn * 16;
      if (count == 0)
        *reinterpret_cast<Line*>(target) = {};
      else if (x_aligned)
        copy_line_async(target, x[i] + k, count * 2);
      else
        *reinterpret_cast<Line*>(target) = load_part(reinterpret_cast<const U16*>(x[i] + k), count);
    }
    commit_copies();
  }

  SINTER_DEVICE void multiply(int step, Sums& sums) const {
    const int lane = lane_idx();
    const unsigned char* a_rows =
        row_tile(step) + (warp_idx() / 2 * 32 + lane % 16) * kTileRowBytes + lane / 16 * 16;
    const unsigned char* b_rows =
        column_tile(step) + (warp_idx() % 2 * (kColumns / 2) + lane / 16 * 8 + lane % 8) * kTileRowBytes +
        lane / 8 % 2 * 16;
    SINTER_UNROLL
    for (int k = 0; k < kTileK; k += 16) {
      U32 a[2][4];
      load_matrices(a[0], a_rows + k * 2);
      load_matrices(a[1], a_rows + 16 * kTileRowBytes + k * 2);
      SINTER_UNROLL
      for (int j = 0; j < kColumnTiles; j += 2) {
        U32 b[4];
        load_matrices(b, b_rows + j * 8 * kTileRowBytes + k * 2);
        const U32 left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
        SINTER_UNROLL
        for (int i = 0; i < 2; ++i) {
          mma(sums[i][j], a[i], left);
          mma(sums[i][j + 1], a[i], right);
        }
      }
    }
  }

  unsigned char* shared_;
  int K_;
};

}  // namespace sinter::gpu
