// The methods of strings, lists and dicts that a template may call.
#pragma once

#include <string_view>

#include "text/jinja/value.h"

namespace sinter::text::jinja {

struct Method {
  std::string_view name;
  Value (*call)(Runtime&, const Value& self, const Arguments&);  // nullptr: Python has it, we do not
};

// nullptr when Python has no such method; it may still be a key.
const Method* find_method(const Value& self, std::string_view name);
// Changes its object: refused by the sandbox that Hugging Face renders in.
bool is_mutator(const Value& self, std::string_view name);

// Pieces shared with the filters of the same name.
Value replace(Runtime& runtime, std::string_view text, std::string_view from, std::string_view to,
              int64_t count);
std::string_view strip(Runtime& runtime, std::string_view text, const std::optional<Value>& characters,
                       bool left, bool right);
Value join(Runtime& runtime, std::string_view separator, const std::vector<Value>& items);

}  // namespace sinter::text::jinja
