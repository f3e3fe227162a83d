// ops::MoeFfnProblem for few slots an expert, or float32 activations. SINTER_FORMAT: of gate and up,
// SINTER_FORMAT_DOWN: a format of gpu/formats.h; SINTER_X: float or Bf16; SINTER_TILES: slots of a block / 8.
#include "gpu/moe_ffn_params.h"
#include "gpu/row_product.h"

namespace sinter::gpu {

// hidden[i] = silu(gate x) * (up x) for the i-th sorted slot, rounded to x's type.
// x [T, H], experts [E, 3]: gate, up [I, H], down [H, I]; hidden [S, I]
SINTER_KERNEL(kRowWarps* kWarp)
moe_gate_up_decode(const SINTER_X* x, const Matrix* experts, const int* slots, const MoeTile* tiles,
                   const int* num_tiles, SINTER_X* hidden, MoeFfnParams p) {
  using Sums = WarpSums<SINTER_TILES>;
  SINTER_SHARED(float, shared_gate, Sums::kShared);
  SINTER_SHARED(float, shared_up, Sums::kShared);
  begin_kernel();
  if (block_y() >= *num_tiles) return;
  const MoeTile tile = tiles[block_y()];
  const Matrix gate = experts[3 * tile.expert], up = experts[3 * tile.expert + 1];
  const int n0 = block_x() * kRowsAtOnce;
  const SINTER_X* columns[SINTER_TILES];
  SINTER_UNROLL
  for (int i = 0; i < SINTER_TILES; ++i) {
    const int column = 8 * i + lane_idx() / 4;
    columns[i] = column < tile.count ? x + slots[tile.begin + column] / p.A * p.x_stride : nullptr;
  }
  const bool x_aligned = is_aligned(x, p.x_stride * static_cast<I64>(sizeof(SINTER_X)));
  const auto multiply = [&](const Matrix& w, float* shared) {
    float sums[SINTER_TILES][4] = {};
    add_row_products(SINTER_FORMAT(), w, n0, p.I, p.H, columns, x_aligned, sums);
    Sums(shared).put(sums);
  };
  multiply(gate, shared_gate);
  multiply(up, shared_up);
  sync_block();
  for (int i = thread_idx(); i < Sums::kElements; i += num_threads()) {
    const int n = n0 + i % 16, column = i / 16;
    if (n >= p.I || column >= tile.count) continue;
    const float g = SINTER_FORMAT::finish(Sums(shared_gate).total(i), gate);
    const float u = SINTER_FORMAT::finish(Sums(shared_up).total(i), up);
    store(hidden + static_cast<I64>(tile.begin + column) * p.I, n, g / (1 + expf(-g)) * u);
  }
}

// outputs[slot] = down hidden; outputs [S, H]
SINTER_KERNEL(kRowWarps* kWarp)
moe_down_decode(const SINTER_X* hidden, const Matrix* experts, const int* slots, const MoeTile* tiles,
                const int* num_tiles, float* outputs, MoeFfnParams p) {
  SINTER_SHARED(float, shared, WarpSums<SINTER_TILES>::kShared);
  begin_kernel();
  if (block_y() >= *num_tiles) return;
  const MoeTile tile = tiles[block_y()];
  const Matrix down = experts[3 * tile.expert + 2];
  const int n0 = block_x() * kRowsAtOnce;
  const SINTER_X* columns[SINTER_TILES];
  SINTER_UNROLL
  for (int i = 0; i < SINTER_TILES; ++i) {
    const int column = 8 * i + lane_idx() / 4;
    columns[i] = column < tile.count ? hidden + static_cast<I64>(tile.begin + column) * p.I : nullptr;
  }
  const bool aligned = is_aligned(hidden, p.I * static_cast<I64>(sizeof(SINTER_X)));
  float sums[SINTER_TILES][4] = {};
  add_row_products(SINTER_FORMAT_DOWN(), down, n0, p.H, p.I, columns, aligned, sums);
  for_each_sum(sums, shared, [&](int row, int column, float sum) {
    if (n0 + row >= p.H || column >= tile.count) return;
    const I64 slot = slots[tile.begin + column];
    outputs[slot * p.H + n0 + row] = SINTER_FORMAT_DOWN::finish(sum, down);
  });
}

}  // namespace sinter::gpu
