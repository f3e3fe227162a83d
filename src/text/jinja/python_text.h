// Python's view of text on UTF-8: code points, white space, case, and how literals are written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sinter::text::jinja {

// All functions take valid UTF-8 (checked once, where text comes in).
bool is_valid_utf8(std::string_view text);
int64_t num_code_points(std::string_view text);
// The code point at byte `pos`, which moves behind it.
char32_t next_code_point(std::string_view text, size_t& pos);
std::u32string to_code_points(std::string_view text);
std::string to_utf8(std::u32string_view codes);

bool is_space(char32_t code);      // str.isspace
bool is_line_end(char32_t code);   // str.splitlines
bool is_printable(char32_t code);  // str.isprintable
bool is_alpha(char32_t code);      // str.isalpha
bool is_decimal(char32_t code);    // str.isdecimal
bool is_upper(char32_t code);
bool is_lower(char32_t code);
bool is_word(char32_t code);  // \w

// Full case mappings, as str.upper and friends.
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string title_first(
    std::string_view text);  // the first character in title case, the rest lower: capitalize
std::string title_words(std::string_view text);  // str.title

std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);

// repr() of a float: "1.0", "1e+16", "nan".
std::string float_repr(double value);
// repr() of a string: quotes chosen as Python does, what is not printable escaped.
void append_string_repr(std::string_view text, std::string& out);

}  // namespace sinter::text::jinja
