#include "models/blocks/linear.h"

namespace sinter::models {

void Linear::run(const Step& step, const TensorView& x, const TensorView& y, bool accumulate) const {
  step.context.run(ops::LinearProblem{.T = x.dim(0),
                                      .N = N,
                                      .K = K,
                                      .format = weight.matrix().format,
                                      .x = x.dtype(),
                                      .y = y.dtype(),
                                      .has_bias = !bias.is_empty(),
                                      .accumulate = accumulate},
                   ops::LinearArgs{.x = x, .weight = &weight, .bias = bias, .y = y});
}

TensorView Linear::run(const Step& step, const TensorView& x, DType dtype) const {
  const TensorView y = step.take(dtype, {x.dim(0), N});
  run(step, x, y);
  return y;
}

}  // namespace sinter::models
