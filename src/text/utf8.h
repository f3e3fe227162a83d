// UTF-8 as the Unicode standard has it (table 3-7): no overlong forms, no surrogates, at most U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sinter::text {

// What stands at the start of `bytes` (not empty).
struct Utf8Step {
  enum class Kind {
    kCharacter,  // a whole character of `size` bytes
    kInvalid,    // `size` bytes that no continuation can make valid: one U+FFFD
    kPartial,    // the text ends inside a character of which `size` bytes are here
  };
  Kind kind;
  size_t size;
  uint32_t code_point;  // of kCharacter
};
Utf8Step utf8_step(std::string_view bytes);

// The character at `position` of text known to be valid; moves `position` behind it.
uint32_t next_code_point(std::string_view valid, size_t& position);

void append_utf8(std::string& text, uint32_t code_point);

bool is_utf8(std::string_view bytes);

// Every maximal invalid part becomes one U+FFFD, as Python's errors='replace' and Rust's
// from_utf8_lossy do.
std::string replace_invalid_utf8(std::string_view bytes);

}  // namespace sinter::text
