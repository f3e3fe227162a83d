// DeepSeek-V3.2: V3 with a lightning indexer in every layer. Its rope pairs halves, that of attention
// neighbours.
#include "models/blocks/config_reader.h"
#include "models/model.h"

namespace sinter::models {
namespace {

DecoderSpec read_config(const Json& json, const std::string& where) {
  const JsonObject config(json, where);
  DecoderSpec spec = read_mla_moe(config);
  std::get<MlaSpec>(spec.attention).indexer = read_indexer(config, spec.L, /*rope_interleaved=*/false);
  return spec;
}

}  // namespace

extern const ModelInfo deepseek_v32{.model_type = "deepseek_v32", .read_config = read_config};

}  // namespace sinter::models
