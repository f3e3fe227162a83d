// Rows of weight matrices of any format, decoded where they lie and multiplied with rows of activations.
#pragma once

#include <span>

#include "ops/weights.h"

namespace sinter::kernels::cpu {

// Activation rows that one decoding of a weight row serves.
inline constexpr int64_t kRowsAtOnce = 16;

// sums[j] = sum_k w[n, k] * x[j][k] for up to kRowsAtOnce rows x, each [K] of x_dtype. Every sum has the same
// order whatever else is in the call.
void row_dots(const ops::Weight& weight, int64_t n, DType x_dtype, std::span<const std::byte* const> x,
              float* sums);

}  // namespace sinter::kernels::cpu
