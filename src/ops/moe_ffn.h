#pragma once

#include "ops/weights.h"

namespace sinter::ops {

// y[t] = sum_a weights[t, a] * down_e( silu(gate_e x[t]) * (up_e x[t]) ),  e = ids[t, a]
// (+ y[t] when `accumulate`). The sum over a runs in the order of a token's ids, in float32, whatever else
// is in the batch. The intermediate is rounded to x's type. An id of -1 is an empty slot.
struct MoeFfnProblem {
  int64_t T, H, I, E, A;
  WeightFormat format = WeightFormat::kNvfp4;       // of gate and up
  WeightFormat format_down = WeightFormat::kNvfp4;  // kMixed where experts disagree
  DType x = DType::kBF16;                           // f32 or bf16
  DType y = DType::kF32;                            // f32 or bf16
  bool accumulate = false;                          // only with y f32
  bool operator==(const MoeFfnProblem&) const = default;
};
struct MoeFfnArgs {
  TensorView x;                            // [T, H], rows may be strided
  TensorView ids;                          // [T, A] i32
  TensorView weights;                      // [T, A] f32
  const PackedWeights* experts = nullptr;  // MoeWeights
  TensorView y;                            // [T, H]
};

}  // namespace sinter::ops
