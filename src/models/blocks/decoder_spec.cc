#include "models/decoder_spec.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/core.h>

namespace sinter::models {
namespace {

// DeepSeek's attention factor: grows with the logarithm of the stretch.
double yarn_mscale(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

// Collects the tensors of a plan in checkpoint order.
class PlanBuilder {
 public:
  explicit PlanBuilder(const DecoderSpec& spec) : spec_(spec) {}

  std::vector<TensorSpec> build() {
    add({.name = "model.embed_tokens.weight",
         .kind = TensorSpec::Kind::kTable,
         .part = Part::kEmbedding,
         .N = spec_.V,
         .K = spec_.H});
    for (layer_ = 0; layer_ < spec_.L; ++layer_) add_layer();
    layer_ = -1;
    add_vector("model.norm.weight", Part::kNorms, spec_.H);
    if (!spec_.has_tied_head) add_linear("lm_head", Part::kHead, spec_.V, spec_.H);
    return std::move(plan_);
  }

 private:
  void add(TensorSpec tensor) {
    tensor.layer = layer_;
    plan_.push_back(std::move(tensor));
  }
  void add_linear(std::string name, Part part, int64_t N, int64_t K, int expert = -1) {
    add({.name = std::move(name),
         .kind = TensorSpec::Kind::kLinear,
         .part = part,
         .N = N,
         .K = K,
         .expert = expert});
  }
  void add_vector(std::string name, Part part, int64_t N, bool is_f32 = false) {
    add({.name = std::move(name), .kind = TensorSpec::Kind::kVector, .part = part, .N = N, .is_f32 = is_f32});
  }

  void add_layer() {
    const std::string prefix = fmt::format("model.layers.{}", layer_);
    add_vector(prefix + ".input_layernorm.weight", Part::kNorms, spec_.H);
    if (const auto* mla = std::get_if<MlaSpec>(&spec_.attention)) add_mla(*mla, prefix + ".self_attn");
    if (const auto* gqa = std::get_if<GqaSpec>(&spec_.attention)) add_gqa(*gqa, prefix + ".self_attn");
    add_vector(prefix + ".post_attention_layernorm.weight", Part::kNorms, spec_.H);
    if (spec_.is_sparse[static_cast<size_t>(layer_)])
      add_moe(*spec_.moe, prefix + ".mlp");
    else
      add_mlp(prefix + ".mlp", Part::kDense, spec_.dense_I);
  }

  void add_mla(const MlaSpec& mla, const std::string& prefix) {
    const int64_t q_width = mla.Q * (mla.nope + mla.R);
    if (mla.q_rank > 0) {
      add_linear(prefix + ".q_a_proj", Part::kAttention, mla.q_rank, spec_.H);
      add_vector(prefix + ".q_a_layernorm.weight", Part::kNorms, mla.q_rank);
      add_linear(prefix + ".q_b_proj", Part::kAttention, q_width, mla.q_rank);
    } else {
      add_linear(prefix + ".q_proj", Part::kAttention, q_width, spec_.H);
    }
    add_linear(prefix + ".kv_a_proj_with_mqa", Part::kAttention, mla.C + mla.R, spec_.H);
    add_vector(prefix + ".kv_a_layernorm.weight", Part::kNorms, mla.C);
    add_linear(prefix + ".kv_b_proj", Part::kAttention, mla.Q * (mla.nope + mla.Dv), mla.C);
    add_linear(prefix + ".o_proj", Part::kAttention, spec_.H, mla.Q * mla.Dv);
    if (!mla.indexer || !mla.indexer->is_full[static_cast<size_t>(layer_)]) return;
    const IndexerSpec& indexer = *mla.indexer;
    add_linear(prefix + ".indexer.wq_b", Part::kIndexer, indexer.heads * indexer.D, mla.q_rank);
    add_linear(prefix + ".indexer.wk", Part::kIndexer, indexer.D, spec_.H);
    add_vector(prefix + ".indexer.k_norm.weight", Part::kNorms, indexer.D);
    add_vector(prefix + ".indexer.k_norm.bias", Part::kNorms, indexer.D);
    add_linear(prefix + ".indexer.weights_proj", Part::kIndexer, indexer.heads, spec_.H);
  }

  void add_gqa(const GqaSpec& gqa, const std::string& prefix) {
    for (const char* which : {".q_proj", ".k_proj", ".v_proj"}) {
      const int64_t width = (which == std::string_view(".q_proj") ? gqa.Q : gqa.G) * gqa.D;
      add_linear(prefix + which, Part::kAttention, width, spec_.H);
      if (gqa.has_bias) add_vector(prefix + which + ".bias", Part::kAttention, width);
    }
    add_linear(prefix + ".o_proj", Part::kAttention, spec_.H, gqa.Q * gqa.D);
    if (!gqa.has_qk_norm) return;
    add_vector(prefix + ".q_norm.weight", Part::kNorms, gqa.D);
    add_vector(prefix + ".k_norm.weight", Part::kNorms, gqa.D);
  }

  void add_mlp(const std::string& prefix, Part part, int64_t I, int expert = -1) {
    add_linear(prefix + ".gate_proj", part, I, spec_.H, expert);
    add_linear(prefix + ".up_proj", part, I, spec_.H, expert);
    add_linear(prefix + ".down_proj", part, spec_.H, I, expert);
  }

  void add_moe(const MoeSpec& moe, const std::string& prefix) {
    add_linear(prefix + ".gate", Part::kRouter, moe.E, spec_.H);
    if (moe.has_bias)
      add_vector(prefix + ".gate.e_score_correction_bias", Part::kRouter, moe.E, /*is_f32=*/true);
    for (int expert = 0; expert < moe.E; ++expert)
      add_mlp(fmt::format("{}.experts.{}", prefix, expert), Part::kRouted, moe.I, expert);
    if (moe.shared_I > 0) add_mlp(prefix + ".shared_experts", Part::kShared, moe.shared_I);
  }

  const DecoderSpec& spec_;
  int layer_ = -1;
  std::vector<TensorSpec> plan_;
};

}  // namespace

std::vector<float> RopeSpec::inv_freq() const {
  std::vector<float> result(static_cast<size_t>(R / 2));
  const auto d = static_cast<double>(R);
  double low = 0, high = 0;
  if (yarn) {
    // Pairs that turn more than beta_fast times over the original context keep their frequency, those
    // under beta_slow are stretched by `factor`, with a linear ramp between.
    const auto pair_of_turns = [&](double turns) {
      return d *
             std::log(static_cast<double>(yarn->original_max_positions) / (turns * 2 * std::numbers::pi)) /
             (2 * std::log(theta));
    };
    low = std::max(std::floor(pair_of_turns(yarn->beta_fast)), 0.0);
    high = std::min(std::ceil(pair_of_turns(yarn->beta_slow)), d - 1);
    if (low == high) high += 0.001;
  }
  for (size_t i = 0; i < result.size(); ++i) {
    const double base = std::pow(theta, -2.0 * static_cast<double>(i) / d);
    const double ramp = yarn ? std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0) : 0.0;
    result[i] = static_cast<float>(yarn ? base / yarn->factor * ramp + base * (1 - ramp) : base);
  }
  return result;
}

float RopeSpec::cos_sin_scale() const {
  if (!yarn) return 1;
  if (yarn->attention_factor) return static_cast<float>(*yarn->attention_factor);
  return static_cast<float>(yarn_mscale(yarn->factor, yarn->mscale) /
                            yarn_mscale(yarn->factor, yarn->mscale_all_dim));
}

double RopeSpec::softmax_factor() const {
  if (!yarn || yarn->mscale_all_dim == 0) return 1;
  const double mscale = yarn_mscale(yarn->factor, yarn->mscale_all_dim);
  return mscale * mscale;
}

std::string_view name(Part part) {
  switch (part) {
    case Part::kEmbedding: return "embedding";
    case Part::kAttention: return "attention";
    case Part::kIndexer: return "indexer";
    case Part::kRouter: return "router";
    case Part::kRouted: return "routed";
    case Part::kShared: return "shared";
    case Part::kDense: return "dense";
    case Part::kNorms: return "norms";
    case Part::kHead: return "head";
  }
  return "?";
}

std::vector<TensorSpec> tensor_plan(const DecoderSpec& spec) { return PlanBuilder(spec).build(); }

}  // namespace sinter::models
