// Qwen3 mixture-of-experts models: grouped-query attention with normed heads, a softmax router, no shared
// expert.
#include <algorithm>

#include "models/blocks/config_reader.h"
#include "models/model.h"

namespace sinter::models {
namespace {

MoeSpec read_moe(const JsonObject& config) {
  MoeSpec moe;
  moe.E = config.get_int(config.has("num_experts") ? "num_experts" : "num_local_experts", 1, kMaxExperts);
  moe.A = config.get_int("num_experts_per_tok", 1, kMaxExperts);
  moe.I = config.get_int("moe_intermediate_size", 1, kMaxDim);
  moe.scoring = ops::RouterScoring::kSoftmax;
  moe.normalize = config.get_bool_or("norm_topk_prob", false);
  moe.has_bias = false;
  return moe;
}

std::vector<bool> read_sparse(const JsonObject& config, int64_t L) {
  const std::vector<int64_t> dense = config.get_ints("mlp_only_layers", 0, kMaxLayers);
  const int64_t step = config.get_int_or("decoder_sparse_step", 1, kMaxLayers, 1);
  std::vector<bool> result;
  for (int64_t layer = 0; layer < L; ++layer)
    result.push_back((layer + 1) % step == 0 && std::ranges::find(dense, layer) == dense.end());
  return result;
}

DecoderSpec read_config(const Json& json, const std::string& where) {
  const JsonObject config(json, where);
  refuse_true(config, "attention_bias");
  DecoderSpec spec = read_frame(config);
  GqaSpec gqa = read_gqa(config, spec.H);
  gqa.has_qk_norm = true;
  spec.rope = read_rope(config, read_rotary_dim(config, gqa.D, 1.0), /*interleaved=*/false);
  spec.attention = gqa;
  spec.moe = read_moe(config);
  spec.is_sparse = read_sparse(config, spec.L);
  return spec;
}

}  // namespace

extern const ModelInfo qwen3_moe{.model_type = "qwen3_moe", .read_config = read_config};

}  // namespace sinter::models
