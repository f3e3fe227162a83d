#include "text/jinja/python_text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <charconv>
#include <cmath>

#include "text/jinja/special_casing.h"
#include "text/utf8.h"

namespace sinter::text::jinja {
namespace {

utf8proc_category_t category(char32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)); }

bool is_cased(char32_t code) {
  return is_upper(code) || is_lower(code) || category(code) == UTF8PROC_CATEGORY_LT;
}

void append_mapped(std::string& out, char32_t code, Case target) {
  if (code < 0x80) {
    const char c = static_cast<char>(code);
    if (target == Case::kLower)
      out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    else
      out += c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    return;
  }
  if (const std::u32string_view special = special_casing(code, target); !special.empty()) {
    for (const char32_t mapped : special) append_utf8(out, mapped);
    return;
  }
  const auto c = static_cast<utf8proc_int32_t>(code);
  const utf8proc_int32_t mapped = target == Case::kLower   ? utf8proc_tolower(c)
                                  : target == Case::kUpper ? utf8proc_toupper(c)
                                                           : utf8proc_totitle(c);
  append_utf8(out, static_cast<char32_t>(mapped));
}

// A capital sigma that ends a word is written differently from one inside: the only rule of case that looks
// at the neighbours.
bool is_final_sigma(const std::u32string& codes, size_t index) {
  const auto is_ignorable = [](char32_t code) {
    const auto kind = category(code);
    return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_ME || kind == UTF8PROC_CATEGORY_CF ||
           kind == UTF8PROC_CATEGORY_LM || kind == UTF8PROC_CATEGORY_SK || code == '\'' || code == '.' ||
           code == ':' || code == 0xB7 || code == 0x2019;
  };
  size_t before = index;
  while (before > 0 && is_ignorable(codes[before - 1])) --before;
  if (before == 0 || !is_cased(codes[before - 1])) return false;
  size_t after = index + 1;
  while (after < codes.size() && is_ignorable(codes[after])) ++after;
  return after == codes.size() || !is_cased(codes[after]);
}

void append_lower(std::string& out, const std::u32string& codes, size_t index) {
  constexpr char32_t kCapitalSigma = 0x3A3;
  if (codes[index] == kCapitalSigma)
    append_utf8(out, is_final_sigma(codes, index) ? 0x3C2 : 0x3C3);
  else
    append_mapped(out, codes[index], Case::kLower);
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  auto left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t used = utf8proc_iterate(bytes, left, &code);
    if (used <= 0) return false;
    bytes += used;
    left -= used;
  }
  return true;
}

int64_t num_code_points(std::string_view text) {
  int64_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

char32_t next_code_point(std::string_view text, size_t& pos) {
  const auto byte = [&](size_t offset) {
    return pos + offset < text.size() ? static_cast<unsigned char>(text[pos + offset]) & 0x3Fu : 0u;
  };
  const auto lead = static_cast<unsigned char>(text[pos]);
  char32_t code = lead;
  size_t size = 1;
  if (lead >= 0xF0) {
    code = (lead & 0x07u) << 18 | byte(1) << 12 | byte(2) << 6 | byte(3);
    size = 4;
  } else if (lead >= 0xE0) {
    code = (lead & 0x0Fu) << 12 | byte(1) << 6 | byte(2);
    size = 3;
  } else if (lead >= 0xC0) {
    code = (lead & 0x1Fu) << 6 | byte(1);
    size = 2;
  }
  pos = std::min(pos + size, text.size());
  return code;
}

std::u32string to_code_points(std::string_view text) {
  std::u32string codes;
  codes.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) codes += next_code_point(text, pos);
  return codes;
}

std::string to_utf8(std::u32string_view codes) {
  std::string text;
  text.reserve(codes.size());
  for (const char32_t code : codes) append_utf8(text, code);
  return text;
}

bool is_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_line_end(char32_t code) {
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 || code == 0x2028 ||
         code == 0x2029;
}

bool is_printable(char32_t code) {
  if (code < 0x7F) return code >= 0x20;
  switch (category(code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
  }
}

bool is_alpha(char32_t code) {
  const auto kind = category(code);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t code) { return category(code) == UTF8PROC_CATEGORY_ND; }
bool is_upper(char32_t code) { return category(code) == UTF8PROC_CATEGORY_LU; }
bool is_lower(char32_t code) { return category(code) == UTF8PROC_CATEGORY_LL; }

bool is_word(char32_t code) {
  const auto kind = category(code);
  return code == '_' || is_alpha(code) || (kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO);
}

std::string upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) append_mapped(out, next_code_point(text, pos), Case::kUpper);
  return out;
}

std::string lower(std::string_view text) {
  const std::u32string codes = to_code_points(text);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < codes.size(); ++i) append_lower(out, codes, i);
  return out;
}

std::string title_first(std::string_view text) {
  const std::u32string codes = to_code_points(text);
  std::string out;
  for (size_t i = 0; i < codes.size(); ++i) {
    if (i == 0)
      append_mapped(out, codes[i], Case::kTitle);
    else
      append_lower(out, codes, i);
  }
  return out;
}

std::string title_words(std::string_view text) {
  const std::u32string codes = to_code_points(text);
  std::string out;
  bool is_inside = false;
  for (size_t i = 0; i < codes.size(); ++i) {
    if (is_inside)
      append_lower(out, codes, i);
    else
      append_mapped(out, codes[i], Case::kTitle);
    is_inside = is_cased(codes[i]);
  }
  return out;
}

std::string_view strip_left(std::string_view text) {
  size_t pos = 0;
  while (pos < text.size()) {
    size_t next = pos;
    if (!is_space(next_code_point(text, next))) break;
    pos = next;
  }
  return text.substr(pos);
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    size_t pos = start;
    if (!is_space(next_code_point(text, pos))) break;
    text = text.substr(0, start);
  }
  return text;
}

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view shortest(buffer, static_cast<size_t>(end - buffer));  // "-1.25e-07"
  const size_t mark = shortest.find('e');
  int exponent = 0;
  const size_t sign = shortest[mark + 1] == '+' ? 1 : 0;
  std::from_chars(shortest.data() + mark + 1 + sign, shortest.data() + shortest.size(), exponent);
  if (exponent < -4 || exponent >= 16)
    return fmt::format("{}e{}{:02}", shortest.substr(0, mark), exponent < 0 ? '-' : '+', std::abs(exponent));
  char fixed[64];
  const auto fixed_end = std::to_chars(fixed, fixed + sizeof fixed, value, std::chars_format::fixed).ptr;
  std::string text(fixed, fixed_end);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

void append_string_repr(std::string_view text, std::string& out) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  for (size_t pos = 0; pos < text.size();) {
    const char32_t code = next_code_point(text, pos);
    if (code == static_cast<char32_t>(quote) || code == '\\') {
      out += '\\';
      out += static_cast<char>(code);
    } else if (code == '\n') {
      out += "\\n";
    } else if (code == '\r') {
      out += "\\r";
    } else if (code == '\t') {
      out += "\\t";
    } else if (is_printable(code)) {
      append_utf8(out, code);
    } else if (code < 0x100) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<uint32_t>(code));
    } else if (code < 0x10000) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<uint32_t>(code));
    } else {
      fmt::format_to(std::back_inserter(out), "\\U{:08x}", static_cast<uint32_t>(code));
    }
  }
  out += quote;
}

}  // namespace sinter::text::jinja
