// ops::LayerNormProblem. SINTER_X, SINTER_Y: float or Bf16.
#include "gpu/norm_params.h"
#include "gpu/warp.h"

namespace sinter::gpu {

// x [N, H], weight [H], bias [H], y [N, H]; y may be x.
SINTER_KERNEL(1024)
layer_norm(const SINTER_X* x, const float* weight, const float* bias, SINTER_Y* y, NormParams p) {
  SINTER_SHARED(float, scratch, kWarp);
  begin_kernel();
  const SINTER_X* source = x + block_x() * p.x_stride;
  SINTER_Y* target = y + block_x() * p.y_stride;
  float sum = 0;
  for (int h = thread_idx(); h < p.H; h += num_threads()) sum += load(source, h);
  const float mean = block_sum(sum, scratch) / static_cast<float>(p.H);
  // A second pass: mean(x^2) - mean^2 cancels when the mean is large.
  float squares = 0;
  for (int h = thread_idx(); h < p.H; h += num_threads()) {
    const float value = load(source, h) - mean;
    squares += value * value;
  }
  const float scale = 1 / sqrtf(block_sum(squares, scratch) / static_cast<float>(p.H) + p.eps);
  for (int h = thread_idx(); h < p.H; h += num_threads())
    store(target, h, (load(source, h) - mean) * scale * weight[h] + bias[h]);
}

}  // namespace sinter::gpu
