// The functions every template sees: range, dict, namespace, raise_exception, strftime_now.
#pragma once

#include <ctime>
#include <string_view>

#include "text/jinja/value.h"

namespace sinter::text::jinja {

// Undefined when there is none of that name.
Value global_function(Runtime& runtime, std::string_view name, std::time_t now);

}  // namespace sinter::text::jinja
