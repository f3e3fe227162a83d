// Oniguruma, by which tokenizer.json's patterns are meant, knows Unicode 16; PCRE2 10.42 knows 14. The
// 10,302 characters assigned in between, and the two that the engines class differently, are matched as
// an older character of the same general category, script (where an older one exists) and length in
// UTF-8, so that patterns and offsets stay as they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sinter::text {

uint32_t stand_in(uint32_t code_point);  // itself for nearly all

// False when nothing in `text` (valid UTF-8) needs a stand-in; else `subject` is `text` with them.
bool replace_with_stand_ins(std::string_view text, std::string& subject);

}  // namespace sinter::text
