// Multi-head latent attention in the absorbed form: heads share one latent row per token, and the products
// with W_UK and W_UV go to the query and the output. With an indexer, over the rows that it selects.
#include "models/blocks/attention.h"

namespace sinter::models {
namespace {

// The lightning indexer of one layer.
class Indexer {
 public:
  Indexer(WeightLoader& loader, const std::string& prefix, const IndexerSpec& spec)
      : spec_(spec),
        wq_b_(loader.linear(prefix + ".wq_b")),
        wk_(loader.linear(prefix + ".wk", {.y = DType::kF32})),
        weights_proj_(loader.linear(prefix + ".weights_proj", {.y = DType::kF32})),
        k_norm_weight_(loader.vector(prefix + ".k_norm.weight")),
        k_norm_bias_(loader.vector(prefix + ".k_norm.bias")) {}

  // Writes the keys of x [T, H] and, where a token may see more rows than are selected, the choice made
  // with q_latent [T, q_rank] to step.index_ids. Rope turns the first R dimensions, not the last.
  void run(Step& step, const Rope& rope, const TensorView& x, const TensorView& q_latent) const {
    const int64_t T = step.T, R = rope.R();
    const TensorView k = wk_.run(step, x, DType::kF32);
    step.layer_norm(k, k_norm_weight_, k_norm_bias_, spec_.norm_eps, k);
    rope.run(step, k.reshape({T, 1, spec_.D}).slice(2, 0, R), spec_.rope_interleaved);
    step.cache_write(k, "index_k");
    if (step.index_ids.is_empty()) return;

    const TensorView q = wq_b_.run(step, q_latent, step.act).reshape({T, spec_.heads, spec_.D});
    rope.run(step, q.slice(2, 0, R), spec_.rope_interleaved);
    step.context.run(ops::IndexerProblem{.T = T,
                                         .B = step.B,
                                         .heads = spec_.heads,
                                         .D = spec_.D,
                                         .P = step.cache.P(),
                                         .max_context = step.context_bucket(),
                                         .topk = spec_.topk,
                                         .q = step.act,
                                         .cache = step.cache.dtype()},
                     ops::IndexerArgs{.q = q,
                                      .w = weights_proj_.run(step, x, DType::kF32),
                                      .k_cache = step.cache.tensor(step.layer, "index_k"),
                                      .batch = step.batch,
                                      .indices = step.index_ids});
    step.report("index_ids", step.index_ids);
  }

 private:
  IndexerSpec spec_;
  Linear wq_b_, wk_, weights_proj_;
  TensorView k_norm_weight_, k_norm_bias_;  // [D] f32
};

class MlaAttention final : public Attention {
 public:
  MlaAttention(WeightLoader& loader, const std::string& prefix, const MlaSpec& spec, int layer,
               double norm_eps)
      : spec_(spec),
        norm_eps_(norm_eps),
        kv_a_proj_(loader.linear(prefix + ".kv_a_proj_with_mqa", {.y = DType::kF32})),
        kv_a_norm_(loader.vector(prefix + ".kv_a_layernorm.weight")),
        kv_b_(loader.split_kv_b(prefix + ".kv_b_proj", spec)),
        o_proj_(loader.linear(prefix + ".o_proj", {.into_residual = true})) {
    if (spec.q_rank > 0) {
      q_a_proj_ = loader.linear(prefix + ".q_a_proj", {.y = DType::kF32});
      q_a_norm_ = loader.vector(prefix + ".q_a_layernorm.weight");
      q_proj_ = loader.linear(prefix + ".q_b_proj");
    } else {
      q_proj_ = loader.linear(prefix + ".q_proj");
    }
    if (spec.indexer && spec.indexer->is_full[static_cast<size_t>(layer)])
      indexer_.emplace(loader, prefix + ".indexer", *spec.indexer);
  }

  void run(Step& step, const Rope& rope, const TensorView& x, const TensorView& residual) const override {
    const int64_t T = step.T, Q = spec_.Q, C = spec_.C, R = spec_.R, nope = spec_.nope, Dv = spec_.Dv;
    TensorView q_latent = x;
    if (spec_.q_rank > 0) {
      q_latent = step.take(step.act, {T, spec_.q_rank});
      step.rms_norm(q_a_proj_.run(step, x, DType::kF32), q_a_norm_, norm_eps_, q_latent);
    }
    const TensorView q = q_proj_.run(step, q_latent, step.act).reshape({T, Q, nope + R});
    const TensorView q_pe = q.slice(2, nope, nope + R);
    rope.run(step, q_pe);

    // Of the row [C + R] only the latent is normed, only the rest turned.
    const TensorView kv = kv_a_proj_.run(step, x, DType::kF32);
    const TensorView latent = kv.slice(1, 0, C);
    step.rms_norm(latent, kv_a_norm_, norm_eps_, latent);
    rope.run(step, kv.reshape({T, 1, C + R}).slice(2, C, C + R));
    step.cache_write(kv, "latent");
    if (indexer_) indexer_->run(step, rope, x, q_latent);

    const TensorView q_absorbed = step.take(step.act, {T, Q, C});
    step.head_linear(q.slice(2, 0, nope), kv_b_.w_uk, q_absorbed);
    const TensorView y_latent = step.take(step.act, {T, Q, C});
    step.context.run(
        ops::MlaAttentionProblem{.T = T,
                                 .B = step.B,
                                 .Q = Q,
                                 .C = C,
                                 .R = R,
                                 .P = step.cache.P(),
                                 .max_context = step.context_bucket(),
                                 .index_topk = step.index_ids.is_empty() ? 0 : step.index_ids.dim(1),
                                 .scale = spec_.softmax_scale,
                                 .q = step.act,
                                 .cache = step.cache.dtype()},
        ops::MlaAttentionArgs{.q_latent = q_absorbed,
                              .q_pe = q_pe,
                              .cache = step.cache.tensor(step.layer, "latent"),
                              .batch = step.batch,
                              .indices = step.index_ids,
                              .y = y_latent});
    const TensorView y = step.take(step.act, {T, Q, Dv});
    step.head_linear(y_latent, kv_b_.w_uv, y);
    o_proj_.run(step, y.reshape({T, Q * Dv}), residual, /*accumulate=*/true);
  }

 private:
  MlaSpec spec_;
  double norm_eps_;
  Linear q_a_proj_;      // unused when q_rank is 0
  TensorView q_a_norm_;  // [q_rank] f32
  Linear q_proj_;        // from q_rank, or from H
  Linear kv_a_proj_;
  TensorView kv_a_norm_;  // [C] f32
  SplitKvB kv_b_;
  Linear o_proj_;
  std::optional<Indexer> indexer_;
};

}  // namespace

std::unique_ptr<Attention> make_mla(WeightLoader& loader, const std::string& prefix, const MlaSpec& spec,
                                    int layer, double norm_eps) {
  return std::make_unique<MlaAttention>(loader, prefix, spec, layer, norm_eps);
}

}  // namespace sinter::models
