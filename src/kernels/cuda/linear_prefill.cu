// ops::LinearProblem for many tokens, bf16 activations. SINTER_FORMAT: Bf16Format, Fp8TensorFormat,
// Fp8BlockFormat, Nvfp4Format or Mxfp4Format; SINTER_Y: float or Bf16; SINTER_COLUMNS: tokens of a block, 64
// or 128.
#include "gpu/linear_params.h"
#include "gpu/tile_product.h"

namespace sinter::gpu {

// x [T, K], w [N, K], bias [N] or null, y [T, N]
SINTER_KERNEL(kTileThreads)
linear_prefill(const Bf16* x, Matrix w, const float* bias, SINTER_Y* y, LinearParams p) {
  using Product = TileProduct<SINTER_FORMAT, SINTER_COLUMNS>;
  SINTER_DYNAMIC_SHARED(shared);
  begin_kernel();
  const int n0 = block_x() * kTileRows, t0 = block_y() * SINTER_COLUMNS;
  typename Product::Sums sums = {};
  Product(shared, p.K)
      .run(
          [&](int row) {
            return TileRow{w, n0 + row < p.N ? n0 + row : -1};
          },
          [&](int column) { return t0 + column < p.T ? x + (t0 + column) * p.x_stride : nullptr; },
          is_aligned(x, p.x_stride * 2), sums);
  SINTER_UNROLL
  for (int i = 0; i < 2; ++i) SINTER_UNROLL
  for (int j = 0; j < Product::kColumnTiles; ++j) SINTER_UNROLL
  for (int k = 0; k < 4; ++k) {
    const int n = n0 + Product::row_of(i, k), t = t0 + Product::column_of(j, k);
    if (n >= p.N || t >= p.T) continue;
    float value = SINTER_FORMAT::finish(sums[i][j][k], w);
    if (bias != nullptr) value += bias[n];
    if (p.accumulate) value += load(y + t * p.y_stride, n);
    store(y + t * p.y_stride, n, value);
  }
}

}  // namespace sinter::gpu
