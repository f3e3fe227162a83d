#pragma once

#include "tensor/tensor_view.h"

namespace sinter::ops {

// y[t] = weight[ids[t]]. The caller guarantees 0 <= ids[t] < V.
struct EmbeddingProblem {
  int64_t T, V, H;
  DType weight = DType::kBF16;  // f32, f16 or bf16
  DType y = DType::kF32;        // f32 or bf16
  bool operator==(const EmbeddingProblem&) const = default;
};
struct EmbeddingArgs {
  TensorView ids;     // [T] i32
  TensorView weight;  // [V, H]
  TensorView y;       // [T, H]
};

}  // namespace sinter::ops
