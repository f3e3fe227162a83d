#pragma once

#include "ops/paged_batch.h"

namespace sinter::ops {

// The lightning indexer of sparse attention: the topk rows with the largest
//   I[t, p] = sum_h w[t, h] * relu(q[t, h] . k_p)
// among the rows a token sees; all of them when they are topk or fewer. The positive constants
// heads^-0.5 * dim^-0.5 do not change the choice and are left out. float32 sums in the order of h.
// Exact: ties go to the lower position. indices[t] is ascending, then -1.
struct IndexerProblem {
  int64_t T, B, heads, D, P;
  int64_t max_context;
  int64_t topk;
  DType q = DType::kBF16;      // f32 or bf16
  DType cache = DType::kBF16;  // f32 or bf16
  bool operator==(const IndexerProblem&) const = default;
};
struct IndexerArgs {
  TensorView q;        // [T, heads, D]
  TensorView w;        // [T, heads] f32
  TensorView k_cache;  // [num_pages, P, D]
  PagedBatch batch;
  TensorView indices;  // [T, topk] i32
};

}  // namespace sinter::ops
