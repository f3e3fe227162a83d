// One step through the decoder: what every block needs to know of it, and the small ops they share. Each
// method runs one op; sizes and types are read from the tensors.
#pragma once

#include "models/blocks/arena.h"
#include "models/model.h"

namespace sinter::models {

struct Step {
  dispatch::Context& context;
  Arena& arena;
  const Probe& probe;
  Cache& cache;
  const ops::PagedBatch& batch;
  int64_t T, B;
  int64_t max_context;  // largest position + 1
  DType act;            // of activations between ops: bf16, or f32 in reference mode
  int layer = 0;
  TensorView index_ids = {};  // [T, topk] i32, the choice of the last full indexer; empty: all rows

  // Of the problems of attention and indexer.
  int64_t context_bucket() const { return models::context_bucket(max_context); }

  TensorView take(DType dtype, const Shape& shape) const { return arena.take(dtype, shape); }
  void report(std::string_view name, const TensorView& value) const;

  // x, y [N, H], weight and bias [H] f32; y may be x.
  void rms_norm(const TensorView& x, const TensorView& weight, double eps, const TensorView& y) const;
  void layer_norm(const TensorView& x, const TensorView& weight, const TensorView& bias, double eps,
                  const TensorView& y) const;
  // x [T, N, R], in place
  void rope(const TensorView& x, const TensorView& inv_freq, bool interleaved, float scale) const;
  // x [T, W] into the cache tensor `name` of this layer
  void cache_write(const TensorView& x, std::string_view name) const;
  // gate, up, y [T, I]; y may be either
  void silu_mul(const TensorView& gate, const TensorView& up, const TensorView& y) const;
  // y[t] = table[ids[t]]; also gathers rows of an activation
  void gather(const TensorView& ids, const TensorView& table, const TensorView& y) const;
  // x [T, Q, K], weight [Q, N, K], y [T, Q, N]
  void head_linear(const TensorView& x, const TensorView& weight, const TensorView& y) const;
};

}  // namespace sinter::models
