#pragma once

#include "ops/paged_batch.h"

namespace sinter::ops {

// cache[row of token t] = x[t], converted to the cache's type.
struct CacheWriteProblem {
  int64_t T, B, W, P;
  DType x = DType::kBF16, cache = DType::kBF16;  // f32 or bf16
  bool operator==(const CacheWriteProblem&) const = default;
};
struct CacheWriteArgs {
  TensorView x;      // [T, W], rows may be strided
  TensorView cache;  // [num_pages, P, W]
  PagedBatch batch;
};

}  // namespace sinter::ops
