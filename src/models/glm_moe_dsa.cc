// GLM-5, 5.1, 5.2, 5.3: latent attention over the rows that a lightning indexer selects; from 5.2 on most
// layers share the choice of an earlier one. Rope is interleaved in attention and indexer alike.
#include "models/blocks/config_reader.h"
#include "models/model.h"

namespace sinter::models {
namespace {

DecoderSpec read_config(const Json& json, const std::string& where) {
  const JsonObject config(json, where);
  DecoderSpec spec = read_mla_moe(config);
  std::get<MlaSpec>(spec.attention).indexer = read_indexer(config, spec.L, /*rope_interleaved=*/true);
  return spec;
}

}  // namespace

extern const ModelInfo glm_moe_dsa{.model_type = "glm_moe_dsa", .read_config = read_config};

}  // namespace sinter::models
