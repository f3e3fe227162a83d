// The parts of tokenizer.json that normalizers, pre-tokenizers and decoders share.
#pragma once

#include "base/json.h"
#include "text/regex.h"

namespace sinter::text {

// {"pattern": {"Regex": "..."}} or {"pattern": {"String": "..."}}.
Regex read_pattern(const JsonObject& object);

// The list under `key`; throws Error(kFormat) when it is absent or no list.
const Json& list_at(const JsonObject& object, std::string_view key);

}  // namespace sinter::text
