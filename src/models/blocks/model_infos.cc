#include <fmt/ranges.h>
#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "models/blocks/config_reader.h"
#include "models/model.h"

namespace sinter::models {

DecoderSpec read_decoder_spec(const Json& json, const std::string& where) {
  const JsonObject config(json, where);
  const std::string model_type = config.get_string("model_type");
  std::vector<std::string_view> supported;
  for (const ModelInfo* info : model_infos()) {
    std::vector<std::string_view> names{info->model_type};
    if (info->aliases != nullptr)
      for (const std::string_view alias : info->aliases()) names.push_back(alias);
    if (std::ranges::find(names, model_type) != names.end()) {
      DecoderSpec spec = info->read_config(json, where);
      check_spec(spec, where);
      return spec;
    }
    supported.insert(supported.end(), names.begin(), names.end());
  }
  throw Error(ErrorKind::kUnsupported, {.where = config.where("model_type"),
                                        .expected = fmt::format("one of {}", fmt::join(supported, ", ")),
                                        .found = fmt::format("'{}'", model_type),
                                        .mend = {}});
}

}  // namespace sinter::models
