// DeepSeek-V3, V3.1, R1, and Kimi-K2, which differs in numbers only: latent attention over all rows, YaRN,
// experts chosen within groups.
#include "models/blocks/config_reader.h"
#include "models/model.h"

namespace sinter::models {
namespace {

DecoderSpec read_config(const Json& json, const std::string& where) {
  const JsonObject config(json, where);
  DecoderSpec spec = read_frame(config);
  spec.rope = read_rope(config, config.get_int("qk_rope_head_dim", 2, kMaxHeadDim),
                        config.get_bool_or("rope_interleave", true));
  spec.attention = read_mla(config, spec.rope);
  spec.moe = read_sigmoid_moe(config);
  spec.is_sparse = read_sparse_layers(config, spec.L);
  return spec;
}

}  // namespace

extern const ModelInfo deepseek_v3{.model_type = "deepseek_v3",
                                   .aliases = [] { return std::vector<std::string_view>{"kimi_k2"}; },
                                   .read_config = read_config};

}  // namespace sinter::models
