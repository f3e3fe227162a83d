// The filters (`x | name`) and tests (`x is name`) of the language.
#pragma once

#include <string_view>

#include "text/jinja/value.h"

namespace sinter::text::jinja {

struct Filter {
  std::string_view name;
  Value (*apply)(Runtime&, const Value& input, const Arguments&);
  // Right for strings marked safe too; the others refuse them, because jinja2 would escape on the way.
  bool takes_safe = false;
};

struct Test {
  std::string_view name;
  bool (*holds)(Runtime&, const Value& input, const Arguments&);
};

// nullptr when there is no such filter or test.
const Filter* find_filter(std::string_view name);
const Test* find_test(std::string_view name);

Value apply(Runtime& runtime, const Filter& filter, const Value& input, const Arguments& arguments);

}  // namespace sinter::text::jinja
