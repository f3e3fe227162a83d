// Filters on numbers: conversions and rounding as Python does them.
#pragma once

#include "text/jinja/value.h"

namespace sinter::text::jinja {

Value abs_filter(Runtime& runtime, const Value& value, const Arguments& arguments);
Value int_filter(Runtime& runtime, const Value& value, const Arguments& arguments);
Value float_filter(Runtime& runtime, const Value& value, const Arguments& arguments);
Value round_filter(Runtime& runtime, const Value& value, const Arguments& arguments);

}  // namespace sinter::text::jinja
