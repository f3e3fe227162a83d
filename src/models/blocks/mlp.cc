#include "models/blocks/mlp.h"

#include <tuple>

namespace sinter::models {

DenseMlp::DenseMlp(WeightLoader& loader, const std::string& prefix)
    : gate(loader.linear(prefix + ".gate_proj")),
      up(loader.linear(prefix + ".up_proj")),
      down(loader.linear(prefix + ".down_proj", {.into_residual = true})) {}

void DenseMlp::run(const Step& step, const TensorView& x, const TensorView& residual) const {
  const TensorView hidden = gate.run(step, x, step.act);
  step.silu_mul(hidden, up.run(step, x, step.act), hidden);
  down.run(step, hidden, residual, /*accumulate=*/true);
}

MoeMlp::MoeMlp(WeightLoader& loader, const std::string& prefix, const MoeSpec& moe)
    : spec(moe),
      router(loader.linear(prefix + ".gate", {.y = DType::kF32})),
      experts(loader.experts(prefix + ".experts", moe)) {
  if (spec.has_bias) router_bias = loader.vector(prefix + ".gate.e_score_correction_bias");
  std::tie(format, format_down) = expert_formats(experts.experts());
  if (spec.shared_I > 0) shared.emplace(loader, prefix + ".shared_experts");
}

void MoeMlp::run(const Step& step, const TensorView& x, const TensorView& residual) const {
  const TensorView logits = router.run(step, x, DType::kF32);
  const TensorView ids = step.take(DType::kI32, {step.T, spec.A});
  const TensorView weights = step.take(DType::kF32, {step.T, spec.A});
  step.context.run(ops::RouterProblem{.T = step.T,
                                      .E = spec.E,
                                      .A = spec.A,
                                      .scoring = spec.scoring,
                                      .num_groups = spec.num_groups,
                                      .topk_groups = spec.topk_groups,
                                      .normalize = spec.normalize,
                                      .scale = static_cast<float>(spec.scale),
                                      .has_bias = spec.has_bias},
                   ops::RouterArgs{.logits = logits, .bias = router_bias, .ids = ids, .weights = weights});
  step.report("router_ids", ids);
  step.report("router_weights", weights);
  step.context.run(
      ops::MoeFfnProblem{.T = step.T,
                         .H = x.dim(1),
                         .I = spec.I,
                         .E = spec.E,
                         .A = spec.A,
                         .format = format,
                         .format_down = format_down,
                         .x = step.act,
                         .y = DType::kF32,
                         .accumulate = true},
      ops::MoeFfnArgs{.x = x, .ids = ids, .weights = weights, .experts = &experts, .y = residual});
  if (shared) shared->run(step, x, residual);
}

}  // namespace sinter::models
