#include <cmath>

#include "models/blocks/attention.h"

namespace sinter::models {
namespace {

class GqaAttention final : public Attention {
 public:
  GqaAttention(WeightLoader& loader, const std::string& prefix, const GqaSpec& spec, double norm_eps)
      : spec_(spec),
        norm_eps_(norm_eps),
        q_proj_(loader.linear(prefix + ".q_proj", {.has_bias = spec.has_bias})),
        k_proj_(loader.linear(prefix + ".k_proj", {.y = DType::kF32, .has_bias = spec.has_bias})),
        v_proj_(loader.linear(prefix + ".v_proj", {.has_bias = spec.has_bias})),
        o_proj_(loader.linear(prefix + ".o_proj", {.into_residual = true})) {
    if (!spec.has_qk_norm) return;
    q_norm_ = loader.vector(prefix + ".q_norm.weight");
    k_norm_ = loader.vector(prefix + ".k_norm.weight");
  }

  void run(Step& step, const Rope& rope, const TensorView& x, const TensorView& residual) const override {
    const int64_t T = step.T, Q = spec_.Q, G = spec_.G, D = spec_.D, R = rope.R();
    const TensorView raw_q = q_proj_.run(step, x, spec_.has_qk_norm ? DType::kF32 : step.act);
    const TensorView k = k_proj_.run(step, x, DType::kF32);
    const TensorView v = v_proj_.run(step, x, step.act);
    TensorView q = raw_q;
    if (spec_.has_qk_norm) {
      q = step.take(step.act, {T, Q * D});
      step.rms_norm(raw_q.reshape({T * Q, D}), q_norm_, norm_eps_, q.reshape({T * Q, D}));
      const TensorView k_heads = k.reshape({T * G, D});
      step.rms_norm(k_heads, k_norm_, norm_eps_, k_heads);
    }
    rope.run(step, q.reshape({T, Q, D}).slice(2, 0, R));
    rope.run(step, k.reshape({T, G, D}).slice(2, 0, R));
    step.cache_write(k, "k");
    step.cache_write(v, "v");

    const TensorView y = step.take(step.act, {T, Q, D});
    const auto heads = [&](std::string_view name) {
      const TensorView cache = step.cache.tensor(step.layer, name);
      return cache.reshape({cache.dim(0), cache.dim(1), G, D});
    };
    step.context.run(
        ops::GqaAttentionProblem{.T = T,
                                 .B = step.B,
                                 .Q = Q,
                                 .G = G,
                                 .D = D,
                                 .Dv = D,
                                 .P = step.cache.P(),
                                 .max_context = step.context_bucket(),
                                 .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(D))),
                                 .q = step.act,
                                 .cache = step.cache.dtype()},
        ops::GqaAttentionArgs{.q = q.reshape({T, Q, D}),
                              .k_cache = heads("k"),
                              .v_cache = heads("v"),
                              .batch = step.batch,
                              .indices = {},
                              .y = y});
    o_proj_.run(step, y.reshape({T, Q * D}), residual, /*accumulate=*/true);
  }

 private:
  GqaSpec spec_;
  double norm_eps_;
  Linear q_proj_, k_proj_, v_proj_, o_proj_;
  TensorView q_norm_, k_norm_;  // [D] f32, over each head; empty without
};

}  // namespace

std::unique_ptr<Attention> make_gqa(WeightLoader& loader, const std::string& prefix, const GqaSpec& spec,
                                    double norm_eps) {
  return std::make_unique<GqaAttention>(loader, prefix, spec, norm_eps);
}

}  // namespace sinter::models
