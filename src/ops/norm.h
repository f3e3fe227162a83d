#pragma once

#include "tensor/tensor_view.h"

namespace sinter::ops {

// y = x * rsqrt(mean(x^2) + eps) * weight over the last dimension, mean in float32 (spec: RMSNorm).
// y may be x. N rows: tokens, or tokens x heads.
struct RmsNormProblem {
  int64_t N, H;
  float eps;
  DType x = DType::kF32, y = DType::kBF16;  // f32 or bf16
  bool operator==(const RmsNormProblem&) const = default;
};
struct RmsNormArgs {
  TensorView x;       // [N, H], rows may be strided
  TensorView weight;  // [H] f32
  TensorView y;       // [N, H], rows may be strided
};

// y = (x - mean) * rsqrt(var + eps) * weight + bias, population variance, float32. y may be x.
struct LayerNormProblem {
  int64_t N, H;
  float eps;
  DType x = DType::kF32, y = DType::kBF16;
  bool operator==(const LayerNormProblem&) const = default;
};
struct LayerNormArgs {
  TensorView x;       // [N, H], rows may be strided
  TensorView weight;  // [H] f32
  TensorView bias;    // [H] f32
  TensorView y;       // [N, H], rows may be strided
};

}  // namespace sinter::ops
