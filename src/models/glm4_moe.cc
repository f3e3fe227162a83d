// GLM-4.5, 4.6, 4.7 and the Air models: grouped-query attention with rope on half of each head.
#include "models/blocks/config_reader.h"
#include "models/model.h"

namespace sinter::models {
namespace {

DecoderSpec read_config(const Json& json, const std::string& where) {
  const JsonObject config(json, where);
  DecoderSpec spec = read_frame(config);
  GqaSpec gqa = read_gqa(config, spec.H);
  gqa.has_bias = config.get_bool_or("attention_bias", false);
  gqa.has_qk_norm = config.get_bool_or("use_qk_norm", false);
  spec.rope = read_rope(config, read_rotary_dim(config, gqa.D, 0.5), /*interleaved=*/false);
  spec.attention = gqa;
  spec.moe = read_sigmoid_moe(config);
  spec.is_sparse = read_sparse_layers(config, spec.L);
  return spec;
}

}  // namespace

extern const ModelInfo glm4_moe{.model_type = "glm4_moe", .read_config = read_config};

}  // namespace sinter::models
