// GLM-5, 5.1, 5.2, 5.3: latent attention over the rows that a lightning indexer selects; from 5.2 on most
// layers share the choice of an earlier one. Rope is interleaved in attention and indexer alike.
#include "models/blocks/config_reader.h"
#include "models/model.h"

namespace sinter::models {
namespace {

DecoderSpec read_config(const Json& json, const std::string& where) {
  const JsonObject config(json, where);
  DecoderSpec spec = read_frame(config);
  // head_dim of these files (64 or 192) is not a dimension of anything.
  spec.rope = read_rope(config, config.get_int("qk_rope_head_dim", 2, kMaxHeadDim),
                        config.get_bool_or("rope_interleave", true));
  MlaSpec mla = read_mla(config, spec.rope);
  mla.indexer = read_indexer(config, spec.L, /*rope_interleaved=*/true);
  spec.attention = std::move(mla);
  spec.moe = read_sigmoid_moe(config);
  spec.is_sparse = read_sparse_layers(config, spec.L);
  return spec;
}

}  // namespace

extern const ModelInfo glm_moe_dsa{.model_type = "glm_moe_dsa", .read_config = read_config};

}  // namespace sinter::models
