// config.json and its neighbours, which anybody may have written.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/json_fwd.h"

namespace sinter::checkpoint {

// An object. Throws Error(kFormat), or Error(kLimit) above 64 levels or 5,000 keys. The key
// "quantized_layers" is dropped: it names every quantised layer, the tensors say the same, and a hundred
// thousand keys are more than our ordered JSON is made for.
Json parse_config(std::string_view text, std::string_view where);
Json read_config(const std::filesystem::path& path);

}  // namespace sinter::checkpoint
