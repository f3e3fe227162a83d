// The characters whose upper or title case is more than one character (Unicode's SpecialCasing.txt, the
// unconditional part), which utf8proc's one-to-one mappings leave out.
#pragma once

#include <string_view>

namespace sinter::text::jinja {

enum class Case { kUpper, kTitle, kLower };

// Empty when `code` maps to a single character.
std::u32string_view special_casing(char32_t code, Case target);

}  // namespace sinter::text::jinja
