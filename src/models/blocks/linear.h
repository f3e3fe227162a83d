// A prepared matrix of the model, with the bias it may have.
#pragma once

#include "models/blocks/step.h"

namespace sinter::models {

struct Linear {
  int64_t N = 0, K = 0;
  ops::PackedWeights weight;
  TensorView bias;  // [N] f32, or empty; kept by the checkpoint or the context

  // y [T, N] = x [T, K] W^T (+ bias) (+ y). Rows of both may be strided.
  void run(const Step& step, const TensorView& x, const TensorView& y, bool accumulate = false) const;
  // The same into a new tensor of the step.
  TensorView run(const Step& step, const TensorView& x, DType dtype) const;
};

}  // namespace sinter::models
