#pragma once

#include "ops/weights.h"

namespace sinter::ops {

// y[t, n] = sum_k x[t, k] * w[n, k] (+ bias[n]) (+ y[t, n] when `accumulate`), summed in float32.
struct LinearProblem {
  int64_t T, N, K;
  WeightFormat format = WeightFormat::kBF16;
  DType x = DType::kBF16, y = DType::kBF16;  // f32 or bf16
  bool has_bias = false;
  bool accumulate = false;  // only with y f32
  bool operator==(const LinearProblem&) const = default;
};
struct LinearArgs {
  TensorView x;                           // [T, K], rows may be strided
  const PackedWeights* weight = nullptr;  // Weight [N, K]
  TensorView bias;                        // [N] f32, or empty
  TensorView y;                           // [T, N], rows may be strided
};

// The same with a matrix of its own per head: y[t, q, n] = sum_k x[t, q, k] * w[q, n, k]. The absorbed
// products of MLA: K = nope -> N = C for queries, K = C -> N = Dv for outputs.
struct HeadLinearProblem {
  int64_t T, Q, N, K;
  DType weight = DType::kBF16;               // f32 or bf16
  DType x = DType::kBF16, y = DType::kBF16;  // f32 or bf16
  bool operator==(const HeadLinearProblem&) const = default;
};
struct HeadLinearArgs {
  TensorView x;       // [T, Q, K], T and Q may be strided
  TensorView weight;  // [Q, N, K], contiguous
  TensorView y;       // [T, Q, N], T and Q may be strided
};

}  // namespace sinter::ops
