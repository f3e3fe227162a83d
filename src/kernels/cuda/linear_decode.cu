// ops::LinearProblem for few tokens, or for float32 activations and weights of any number of tokens.
// SINTER_FORMAT: a format of gpu/formats.h but MixedFormat; SINTER_X, SINTER_Y: float or Bf16;
// SINTER_TILES: tokens of a block / 8.
#include "gpu/linear_params.h"
#include "gpu/row_product.h"

namespace sinter::gpu {

// x [T, K], w [N, K], bias [N] or null, y [T, N]
SINTER_KERNEL(kRowWarps* kWarp)
linear_decode(const SINTER_X* x, Matrix w, const float* bias, SINTER_Y* y, LinearParams p) {
  SINTER_SHARED(float, shared, WarpSums<SINTER_TILES>::kShared);
  begin_kernel();
  const int n0 = block_x() * kRowsAtOnce, t0 = block_y() * 8 * SINTER_TILES;
  const SINTER_X* columns[SINTER_TILES];
  SINTER_UNROLL
  for (int tile = 0; tile < SINTER_TILES; ++tile) {
    const int t = t0 + 8 * tile + lane_idx() / 4;
    columns[tile] = t < p.T ? x + t * p.x_stride : nullptr;
  }
  float sums[SINTER_TILES][4] = {};
  add_row_products<SINTER_FORMAT>(w, n0, p.N, p.K, columns,
                                  is_aligned(x, p.x_stride * static_cast<I64>(sizeof(SINTER_X))), sums);
  for_each_sum(sums, shared, [&](int row, int column, float sum) {
    const int n = n0 + row, t = t0 + column;
    if (n >= p.N || t >= p.T) return;
    float value = SINTER_FORMAT::finish(sum, w);
    if (bias != nullptr) value += bias[n];
    if (p.accumulate) value += load(y + t * p.y_stride, n);
    store(y + t * p.y_stride, n, value);
  });
}

}  // namespace sinter::gpu
