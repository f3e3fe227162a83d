// A weight as float32 numbers, whatever its format: for the few matrices that are rearranged at load.
#pragma once

#include <span>

#include "ops/weights.h"

namespace sinter::models {

// Row n of [N, K] into K values.
void dequantize_row(const ops::Weight& weight, int64_t n, std::span<float> values);

}  // namespace sinter::models
