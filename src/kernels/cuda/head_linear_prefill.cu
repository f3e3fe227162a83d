// ops::HeadLinearProblem for many tokens, bf16 activations and weights. SINTER_Y: float or Bf16;
// SINTER_COLUMNS: tokens of a block, 64 or 128.
#include "gpu/head_linear_params.h"
#include "gpu/tile_product.h"

namespace sinter::gpu {

// x [T, Q, K], weight [Q, N, K], y [T, Q, N]
SINTER_KERNEL(kTileThreads)
head_linear_prefill(const Bf16* x, const Bf16* weight, SINTER_Y* y, HeadLinearParams p) {
  using Product = TileProduct<Bf16Format, SINTER_COLUMNS>;
  SINTER_DYNAMIC_SHARED(shared);
  begin_kernel();
  const int n0 = block_x() * kTileRows, t0 = block_y() * SINTER_COLUMNS;
  const I64 q = block_z();
  const Matrix w = {weight + q * p.N * p.K, nullptr, 1, kBF16};
  const Bf16* head = x + q * p.x_stride_head;
  typename Product::Sums sums = {};
  Product(shared, p.K)
      .run(
          [&](int row) {
            return TileRow{w, n0 + row < p.N ? n0 + row : -1};
          },
          [&](int column) { return t0 + column < p.T ? head + (t0 + column) * p.x_stride_token : nullptr; },
          is_aligned(head, p.x_stride_token * 2), sums);
  SINTER_UNROLL
  for (int i = 0; i < 2; ++i) SINTER_UNROLL
  for (int j = 0; j < Product::kColumnTiles; ++j) SINTER_UNROLL
  for (int k = 0; k < 4; ++k) {
    const int n = n0 + Product::row_of(i, k), t = t0 + Product::column_of(j, k);
    if (n < p.N && t < p.T) store(y + q * p.y_stride_head + t * p.y_stride_token, n, sums[i][j][k]);
  }
}

}  // namespace sinter::gpu
