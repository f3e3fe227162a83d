// Python's json.dumps, which the `tojson` of Hugging Face is.
#pragma once

#include <optional>
#include <string>

#include "text/jinja/value.h"

namespace sinter::text::jinja {

struct JsonStyle {
  bool is_ascii = false;
  std::optional<std::string> indent;  // of one level
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool has_sorted_keys = false;
};

std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

}  // namespace sinter::text::jinja
