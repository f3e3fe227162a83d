// DeepSeek-V3, V3.1, R1, and Kimi-K2, which differs in numbers only: latent attention over all rows, YaRN,
// experts chosen within groups.
#include "models/blocks/config_reader.h"
#include "models/model.h"

namespace sinter::models {
namespace {

DecoderSpec read_config(const Json& json, const std::string& where) {
  return read_mla_moe(JsonObject(json, where));
}

}  // namespace

extern const ModelInfo deepseek_v3{.model_type = "deepseek_v3",
                                   .aliases = [] { return std::vector<std::string_view>{"kimi_k2"}; },
                                   .read_config = read_config};

}  // namespace sinter::models
