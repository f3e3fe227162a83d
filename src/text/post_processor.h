// What a checkpoint puts around a plain text: most often nothing, or a token for its beginning.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"

namespace sinter::text {

struct PostProcessor {
  std::vector<int32_t> prefix;
  std::vector<int32_t> suffix;
};

// Reads ByteLevel (which only moves offsets), TemplateProcessing and sequences of them. Throws
// Error(kUnsupported) naming any other.
PostProcessor read_post_processor(const Json& json, const std::string& where);

}  // namespace sinter::text
