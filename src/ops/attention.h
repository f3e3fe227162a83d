#pragma once

#include "ops/paged_batch.h"

namespace sinter::ops {

// Softmax attention of each token over the rows it sees (PagedBatch), or over the rows that `indices`
// names: positions of its own sequence, -1 for none, in any order, none twice, none above the token's own.
// Scores and softmax in float32. A token that sees nothing gets zeros.

// MLA in the absorbed form, one latent row shared by all heads:
//   s[q, p] = (q_latent[t, q] . c_p + q_pe[t, q] . r_p) * scale,  (c_p, r_p) = cache row p
//   y[t, q] = sum_p softmax(s)[q, p] * c_p
struct MlaAttentionProblem {
  int64_t T, B, Q, C, R, P;
  int64_t max_context;     // rows a token may see, at most
  int64_t index_topk = 0;  // width of `indices`; 0: dense
  float scale;
  DType q = DType::kBF16;      // of q_latent, q_pe and y: f32 or bf16
  DType cache = DType::kBF16;  // f32 or bf16
  bool operator==(const MlaAttentionProblem&) const = default;
};
struct MlaAttentionArgs {
  TensorView q_latent;  // [T, Q, C], T and Q may be strided
  TensorView q_pe;      // [T, Q, R], T and Q may be strided
  TensorView cache;     // [num_pages, P, C + R]
  PagedBatch batch;
  TensorView indices;  // [T, index_topk] i32, or empty
  TensorView y;        // [T, Q, C]
};

// Grouped-query attention; head q reads key/value head q / (Q / G):
//   y[t, q] = sum_p softmax_p(q[t, q] . k_p * scale) * v_p
// MLA prefill in the expanded form is the case G = Q, D = nope + rope, Dv.
struct GqaAttentionProblem {
  int64_t T, B, Q, G, D, Dv, P;
  int64_t max_context;
  int64_t index_topk = 0;
  float scale;
  DType q = DType::kBF16;
  DType cache = DType::kBF16;
  bool operator==(const GqaAttentionProblem&) const = default;
};
struct GqaAttentionArgs {
  TensorView q;        // [T, Q, D], T and Q may be strided
  TensorView k_cache;  // [num_pages, P, G, D]
  TensorView v_cache;  // [num_pages, P, G, Dv]
  PagedBatch batch;
  TensorView indices;  // [T, index_topk] i32, or empty
  TensorView y;        // [T, Q, Dv]
};

}  // namespace sinter::ops
