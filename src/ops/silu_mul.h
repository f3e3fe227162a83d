#pragma once

#include "tensor/tensor_view.h"

namespace sinter::ops {

// y = silu(gate) * up, silu(x) = x / (1 + exp(-x)). y may be gate or up.
struct SiluMulProblem {
  int64_t T, I;
  DType x = DType::kBF16, y = DType::kBF16;  // f32 or bf16
  bool operator==(const SiluMulProblem&) const = default;
};
struct SiluMulArgs {
  TensorView gate;  // [T, I], rows may be strided
  TensorView up;    // [T, I], rows may be strided
  TensorView y;     // [T, I], rows may be strided
};

}  // namespace sinter::ops
