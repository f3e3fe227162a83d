// ops::MoeFfnProblem for many slots an expert, bf16 activations. SINTER_FORMAT: of gate and up,
// SINTER_FORMAT_DOWN: Bf16Format, Fp8TensorFormat, Fp8BlockFormat, Nvfp4Format or Mxfp4Format;
// SINTER_COLUMNS: slots of a block, 64 or 128.
#include "gpu/moe_ffn_params.h"
#include "gpu/tile_product.h"

namespace sinter::gpu {

// As moe_gate_up_decode. A tile's rows are 16 of gate, 16 of up, and so on: a thread gets both.
SINTER_KERNEL(kTileThreads)
moe_gate_up_prefill(const Bf16* x, const Matrix* experts, const int* slots, const MoeTile* tiles,
                    const int* num_tiles, Bf16* hidden, MoeFfnParams p) {
  using Product = TileProduct<SINTER_FORMAT, SINTER_COLUMNS>;
  SINTER_DYNAMIC_SHARED(shared);
  begin_kernel();
  if (block_y() >= *num_tiles) return;
  const MoeTile tile = tiles[block_y()];
  const Matrix gate = experts[3 * tile.expert], up = experts[3 * tile.expert + 1];
  const int n0 = block_x() * kTileRows / 2;
  typename Product::Sums sums = {};
  Product(shared, p.H)
      .run(
          [&](int row) {
            const int n = n0 + row / 32 * 16 + row % 16;
            return TileRow{row / 16 % 2 == 0 ? gate : up, n < p.I ? n : -1};
          },
          [&](int column) {
            return column < tile.count ? x + slots[tile.begin + column] / p.A * p.x_stride : nullptr;
          },
          is_aligned(x, p.x_stride * 2), sums);
  SINTER_UNROLL
  for (int j = 0; j < Product::kColumnTiles; ++j) SINTER_UNROLL
  for (int k = 0; k < 4; ++k) {
    const int row = Product::row_of(0, k), column = Product::column_of(j, k);
    const int n = n0 + row / 32 * 16 + row % 16;
    if (n >= p.I || column >= tile.count) continue;
    const float g = SINTER_FORMAT::finish(sums[0][j][k], gate);
    const float u = SINTER_FORMAT::finish(sums[1][j][k], up);
    store(hidden + static_cast<I64>(tile.begin + column) * p.I, n, g / (1 + expf(-g)) * u);
  }
}

// As moe_down_decode.
SINTER_KERNEL(kTileThreads)
moe_down_prefill(const Bf16* hidden, const Matrix* experts, const int* slots, const MoeTile* tiles,
                 const int* num_tiles, float* outputs, MoeFfnParams p) {
  using Product = TileProduct<SINTER_FORMAT_DOWN, SINTER_COLUMNS>;
  SINTER_DYNAMIC_SHARED(shared);
  begin_kernel();
  if (block_y() >= *num_tiles) return;
  const MoeTile tile = tiles[block_y()];
  const Matrix down = experts[3 * tile.expert + 2];
  const int n0 = block_x() * kTileRows;
  typename Product::Sums sums = {};
  Product(shared, p.I)
      .run(
          [&](int row) {
            return TileRow{down, n0 + row < p.H ? n0 + row : -1};
          },
          [&](int column) {
            return column < tile.count ? hidden + static_cast<I64>(tile.begin + column) * p.I : nullptr;
          },
          is_aligned(hidden, p.I * 2), sums);
  SINTER_UNROLL
  for (int j = 0; j < Product::kColumnTiles; ++j) SINTER_UNROLL
  for (int k = 0; k < 4; ++k) {
    const int column = Product::column_of(j, k);
    if (column >= tile.count) continue;
    const I64 slot = slots[tile.begin + column];
    SINTER_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int n = n0 + Product::row_of(i, k);
      if (n < p.H) outputs[slot * p.H + n] = SINTER_FORMAT_DOWN::finish(sums[i][j][k], down);
    }
  }
}

}  // namespace sinter::gpu
