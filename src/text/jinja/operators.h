// Python's operators, look-ups and methods on values.
#pragma once

#include <optional>
#include <string_view>

#include "text/jinja/ast.h"
#include "text/jinja/value.h"

namespace sinter::text::jinja {

Value binary(Runtime& runtime, Binary::Op op, const Value& left, const Value& right);
Value unary(Runtime& runtime, Unary::Op op, const Value& operand);
bool compare(Runtime& runtime, Compare::Op op, const Value& left, const Value& right);

// `object.name`: method or attribute first, then key. `object[key]`: the other way round. Undefined when
// there is neither; throws when `object` itself is undefined.
Value get_attribute(Runtime& runtime, const Value& object, std::string_view name);
Value get_item(Runtime& runtime, const Value& object, const Value& key);
// `object[start:stop:step]`; an absent bound is None.
Value slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop, const Value& step);

// `object.name(arguments)` without making a bound method first; empty when it is not a method.
std::optional<Value> call_method(Runtime& runtime, const Value& object, std::string_view name,
                                 const Arguments& arguments);

// & < > " ' as HTML entities: what `escape` and `safe + text` do.
std::string escape_html(std::string_view text);
// `format % values`.
Value format_percent(Runtime& runtime, std::string_view format, const Value& values);
// `format.format(...)`.
Value format_braces(Runtime& runtime, std::string_view format, const Arguments& arguments);

}  // namespace sinter::text::jinja
