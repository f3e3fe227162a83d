// Tokens to a tree. Every construct that is not supported is an Error(kUnsupported) here, at load, with its
// name and line; unknown tags, filters and tests likewise.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "text/jinja/ast.h"

namespace sinter::text::jinja {

struct ParsedTemplate {
  std::set<std::string, std::less<>> symbols;  // owns what the Symbols of the tree point to
  // Names that loops and macros set by themselves.
  struct {
    Symbol loop, caller, varargs, kwargs;
  } names;
  Body body;
};

ParsedTemplate parse(std::string_view source, std::string_view where);

}  // namespace sinter::text::jinja
