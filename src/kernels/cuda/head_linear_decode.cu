// ops::HeadLinearProblem for few tokens, or float32. SINTER_FORMAT: F32Format or Bf16Format; SINTER_X,
// SINTER_Y: float or Bf16; SINTER_TILES: tokens of a block / 8.
#include "gpu/head_linear_params.h"
#include "gpu/row_product.h"

namespace sinter::gpu {

// x [T, Q, K], weight [Q, N, K], y [T, Q, N]
SINTER_KERNEL(kRowWarps* kWarp)
head_linear_decode(const SINTER_X* x, const void* weight, SINTER_Y* y, HeadLinearParams p) {
  SINTER_SHARED(float, shared, WarpSums<SINTER_TILES>::kShared);
  begin_kernel();
  const int n0 = block_x() * kRowsAtOnce, t0 = block_y() * 8 * SINTER_TILES;
  const I64 q = block_z();
  const Matrix w = {static_cast<const U8*>(weight) + q * p.N * row_bytes<SINTER_FORMAT>(p.K), nullptr, 1, 0};
  const SINTER_X* head = x + q * p.x_stride_head;
  const SINTER_X* columns[SINTER_TILES];
  SINTER_UNROLL
  for (int tile = 0; tile < SINTER_TILES; ++tile) {
    const int t = t0 + 8 * tile + lane_idx() / 4;
    columns[tile] = t < p.T ? head + t * p.x_stride_token : nullptr;
  }
  float sums[SINTER_TILES][4] = {};
  add_row_products<SINTER_FORMAT>(w, n0, p.N, p.K, columns,
                                  is_aligned(head, p.x_stride_token * static_cast<I64>(sizeof(SINTER_X))),
                                  sums);
  for_each_sum(sums, shared, [&](int row, int column, float sum) {
    const int n = n0 + row, t = t0 + column;
    if (n < p.N && t < p.T) store(y + q * p.y_stride_head + t * p.y_stride_token, n, sum);
  });
}

}  // namespace sinter::gpu
