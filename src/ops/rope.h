#pragma once

#include "tensor/tensor_view.h"

namespace sinter::ops {

// Rotary embedding in place on x [T, N, R]: pair i of every head is turned by positions[t] * inv_freq[i],
// cos and sin in float32 and multiplied by `scale` (YaRN's mscale ratio, 1 elsewhere).
// Interleaved pairs are (2i, 2i+1), else (i, i + R/2). Callers slice x to the rotary dimensions.
struct RopeProblem {
  int64_t T, N, R;
  bool interleaved;
  float scale = 1;
  DType x = DType::kBF16;  // f32 or bf16
  bool operator==(const RopeProblem&) const = default;
};
struct RopeArgs {
  TensorView x;          // [T, N, R], T and N may be strided
  TensorView positions;  // [T] i32
  TensorView inv_freq;   // [R/2] f32
};

}  // namespace sinter::ops
