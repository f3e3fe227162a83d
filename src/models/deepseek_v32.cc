// DeepSeek-V3.2: V3 with a lightning indexer in every layer. Its rope pairs halves, that of attention
// neighbours.
#include "models/blocks/config_reader.h"
#include "models/model.h"

namespace sinter::models {
namespace {

DecoderSpec read_config(const Json& json, const std::string& where) {
  const JsonObject config(json, where);
  DecoderSpec spec = read_frame(config);
  spec.rope = read_rope(config, config.get_int("qk_rope_head_dim", 2, kMaxHeadDim),
                        config.get_bool_or("rope_interleave", true));
  MlaSpec mla = read_mla(config, spec.rope);
  mla.indexer = read_indexer(config, spec.L, /*rope_interleaved=*/false);
  spec.attention = std::move(mla);
  spec.moe = read_sigmoid_moe(config);
  spec.is_sparse = read_sparse_layers(config, spec.L);
  return spec;
}

}  // namespace

extern const ModelInfo deepseek_v32{.model_type = "deepseek_v32", .read_config = read_config};

}  // namespace sinter::models
