#include "text/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"
#include "text/jinja/python_text.h"
#include "text/utf8.h"

namespace sinter::text::jinja {
namespace {

constexpr std::array<std::string_view, 26> kOperators = {
    // Longer ones first.
    "//", "**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string normalize_newlines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
    } else {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class Lexer {
 public:
  Lexer(std::string source, std::string_view where) : source_(std::move(source)), where_(where) {}

  std::vector<Token> run() {
    while (pos_ < source_.size()) read_data_and_tag();
    add(TokenKind::kEnd, {});
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(std::string message) {
    throw Error(ErrorKind::kFormat, {.where = fmt::format("{}: line {}", where_, line_at(pos_)),
                                     .expected = {},
                                     .found = std::move(message),
                                     .mend = {}});
  }

  // Positions only grow, so that counting is linear in all.
  int line_at(size_t pos) {
    if (pos < counted_) return line_;
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(counted_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(pos), '\n'));
    counted_ = pos;
    return line_;
  }

  Token& add(TokenKind kind, std::string text) {
    return tokens_.emplace_back(Token{kind, line_at(pos_), std::move(text)});
  }

  bool starts_with(std::string_view text, size_t offset = 0) const {
    return pos_ + offset <= source_.size() && source_.compare(pos_ + offset, text.size(), text) == 0;
  }

  size_t skip_space(size_t pos) const {
    return source_.size() - strip_left(std::string_view(source_).substr(pos)).size();
  }

  void advance_to(size_t pos) {
    is_line_start_ = pos > 0 && source_[pos - 1] == '\n';
    pos_ = pos;
  }

  // Text up to the next tag, then that tag. The sign of the tag decides what is stripped from the text.
  void read_data_and_tag() {
    size_t tag = pos_;
    do {
      tag = source_.find('{', tag);
      if (tag == std::string::npos || tag + 1 >= source_.size()) {
        add(TokenKind::kData, source_.substr(pos_));
        pos_ = source_.size();
        return;
      }
    } while (std::string_view("%{#").find(source_[tag + 1]) == std::string_view::npos && ++tag);
    const char kind = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    add_data(pos_, tag, sign, kind == '{');
    const size_t inside = tag + 2 + (sign == '-' || sign == '+' ? 1 : 0);
    if (kind == '%' && read_raw(tag, inside)) return;
    pos_ = tag;
    if (kind == '#') return read_comment(inside);
    add(kind == '%' ? TokenKind::kBlockBegin : TokenKind::kVariableBegin, {});
    advance_to(inside);
    read_tag(kind == '%');
  }

  void add_data(size_t begin, size_t end, char sign, bool is_variable) {
    std::string_view text = std::string_view(source_).substr(begin, end - begin);
    if (sign == '-') {
      text = strip_right(text);
    } else if (sign != '+' && !is_variable) {
      const size_t newline = text.rfind('\n');
      const size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
      if ((line_begin > 0 || is_line_start_) && strip_left(text.substr(line_begin)).empty())
        text = text.substr(0, line_begin);
    }
    if (!text.empty()) add(TokenKind::kData, std::string(text));
  }

  // The end of a tag at `pos_`, written with `close` ("%}"): behind it, and behind the white space it eats.
  size_t end_of_tag(std::string_view close, bool trims_newline) const {
    if (starts_with("-") && starts_with(close, 1)) return skip_space(pos_ + 1 + close.size());
    if (close != "}}" && starts_with("+") && starts_with(close, 1)) return pos_ + 1 + close.size();
    if (!starts_with(close)) return std::string::npos;
    const size_t end = pos_ + close.size();
    return trims_newline && end < source_.size() && source_[end] == '\n' ? end + 1 : end;
  }

  void read_comment(size_t inside) {
    const size_t close = source_.find("#}", inside);
    if (close == std::string::npos) fail("a comment is not closed");
    pos_ = close > inside && (source_[close - 1] == '-' || source_[close - 1] == '+') ? close - 1 : close;
    advance_to(end_of_tag("#}", true));
  }

  // {% raw %} ... {% endraw %}: one piece of data. False if this tag is not one.
  bool read_raw(size_t tag, size_t inside) {
    pos_ = skip_space(inside);
    if (!starts_with("raw")) return false;
    pos_ = skip_space(pos_ + 3);
    if (starts_with("-%}"))
      advance_to(skip_space(pos_ + 3));
    else if (starts_with("%}"))
      advance_to(pos_ + 2);
    else
      return false;
    const size_t begin = pos_;
    for (size_t end = begin; (end = source_.find("{%", end)) != std::string::npos; end += 2) {
      pos_ = end + 2;
      const char sign = pos_ < source_.size() ? source_[pos_] : '\0';
      if (sign == '-' || sign == '+') ++pos_;
      pos_ = skip_space(pos_);
      if (!starts_with("endraw")) continue;
      pos_ = skip_space(pos_ + 6);
      const size_t behind = end_of_tag("%}", true);
      if (behind == std::string::npos) continue;
      pos_ = begin;
      add_data(begin, end, sign, false);
      advance_to(behind);
      return true;
    }
    pos_ = tag;
    fail("a raw block is not closed");
  }

  void read_tag(bool is_block) {
    const std::string_view close = is_block ? "%}" : "}}";
    std::string open_brackets;
    while (true) {
      pos_ = skip_space(pos_);
      if (pos_ >= source_.size()) fail(fmt::format("a tag is not closed: '{}' is missing", close));
      if (open_brackets.empty()) {
        if (const size_t end = end_of_tag(close, is_block); end != std::string::npos) {
          add(is_block ? TokenKind::kBlockEnd : TokenKind::kVariableEnd, {});
          return advance_to(end);
        }
      }
      read_token(open_brackets);
    }
  }

  void read_token(std::string& open_brackets) {
    const char c = source_[pos_];
    if (is_digit(c)) return read_number();
    if (c == '\'' || c == '"') return read_string(c);
    size_t end = pos_;
    while (end < source_.size()) {
      size_t next = end;
      if (!is_word(next_code_point(source_, next))) break;
      end = next;
    }
    if (end > pos_) {
      add(TokenKind::kName, source_.substr(pos_, end - pos_));
      pos_ = end;
      return;
    }
    for (const std::string_view op : kOperators) {
      if (!starts_with(op)) continue;
      if (op == "(" || op == "[" || op == "{") open_brackets += op == "(" ? ')' : op == "[" ? ']' : '}';
      if (op == ")" || op == "]" || op == "}") {
        if (open_brackets.empty()) fail(fmt::format("unexpected '{}'", op));
        if (open_brackets.back() != op[0])
          fail(fmt::format("expected '{}', found '{}'", open_brackets.back(), op));
        open_brackets.pop_back();
      }
      add(TokenKind::kOperator, std::string(op));
      pos_ += op.size();
      return;
    }
    size_t next = pos_;
    next_code_point(source_, next);
    fail(fmt::format("unexpected character '{}'", source_.substr(pos_, next - pos_)));
  }

  // Digits with single underscores between them, from `pos`; without the underscores.
  std::string read_digits(size_t& pos, auto is_valid) const {
    std::string digits;
    while (pos < source_.size()) {
      if (is_valid(source_[pos]))
        digits += source_[pos++];
      else if (source_[pos] == '_' && !digits.empty() && pos + 1 < source_.size() &&
               is_valid(source_[pos + 1]))
        ++pos;
      else
        break;
    }
    return digits;
  }

  void read_number() {
    if (source_[pos_] == '0' && pos_ + 1 < source_.size()) {
      const char prefix = static_cast<char>(source_[pos_ + 1] | 0x20);
      const int base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
      size_t pos = pos_ + 2;
      if (base != 0) {
        const std::string digits = read_digits(pos, [base](char c) {
          return base == 16 ? is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
                            : c >= '0' && c < '0' + base;
        });
        if (!digits.empty()) return add_integer(digits, base, pos);
      }
    }
    size_t pos = pos_;
    const std::string whole = read_digits(pos, is_digit);
    // "a.0.1" is two look-ups, not a float.
    const bool is_behind_dot = pos_ > 0 && source_[pos_ - 1] == '.';
    std::string number = whole;
    size_t number_end = pos;
    if (!is_behind_dot) {
      size_t fraction = pos + 1;
      if (pos < source_.size() && source_[pos] == '.')
        if (const std::string digits = read_digits(fraction, is_digit); !digits.empty()) {
          number += '.' + digits;
          number_end = fraction;
        }
      if (number_end < source_.size() && (source_[number_end] | 0x20) == 'e') {
        size_t exponent = number_end + 1;
        std::string sign;
        if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-'))
          sign = source_[exponent++];
        if (const std::string digits = read_digits(exponent, is_digit); !digits.empty()) {
          number += 'e' + sign + digits;
          number_end = exponent;
        }
      }
    }
    if (number_end == pos) {
      // Python has no literal like 012: the zero stands alone.
      if (whole.size() > 1 && whole[0] == '0' && whole.find_first_not_of('0') != std::string::npos)
        fail(fmt::format("expected a number, found '{}'", whole));
      return add_integer(whole, 10, pos);
    }
    Token& token = add(TokenKind::kFloat, number);
    token.number = std::strtod(number.c_str(), nullptr);
    pos_ = number_end;
  }

  void add_integer(const std::string& digits, int base, size_t end) {
    int64_t value = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), value, base).ec != std::errc())
      fail(fmt::format("expected an integer of at most 64 bits, found '{}'", digits));
    add(TokenKind::kInteger, digits).integer = value;
    pos_ = end;
  }

  void read_string(char quote) {
    size_t end = pos_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail("a string is not closed");
    std::string text = unescape(std::string_view(source_).substr(pos_ + 1, end - pos_ - 1));
    add(TokenKind::kString, std::move(text));
    pos_ = end + 1;
  }

  std::string unescape(std::string_view raw) {
    std::string text;
    for (size_t i = 0; i < raw.size();) {
      const char c = raw[i++];
      if (c != '\\') {
        text += c;
        continue;
      }
      const char escape = raw[i];  // a backslash is never the last character
      static constexpr std::string_view kNames = "abfnrtv\\'\"";
      static constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
      if (const size_t index = kNames.find(escape); index != std::string_view::npos) {
        text += kMeanings[index];
        ++i;
      } else if (escape == '\n') {
        ++i;
      } else if (escape >= '0' && escape <= '7') {
        unsigned code = 0;
        for (int count = 0; count < 3 && i < raw.size() && raw[i] >= '0' && raw[i] <= '7'; ++count, ++i)
          code = code * 8 + static_cast<unsigned>(raw[i] - '0');
        append_utf8(text, code);
      } else if (escape == 'x' || escape == 'u' || escape == 'U') {
        const size_t count = escape == 'x' ? 2 : escape == 'u' ? 4 : 8;
        const std::string_view digits = raw.substr(i + 1, count);
        uint32_t code = 0;
        const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
        if (digits.size() != count || result.ptr != digits.data() + count || code > 0x10FFFF ||
            (code >= 0xD800 && code < 0xE000))
          fail(fmt::format("expected {} hexadecimal digits of a character after '\\{}'", count, escape));
        append_utf8(text, code);
        i += 1 + count;
      } else if (escape == 'N') {
        fail("the escape '\\N' is not supported");
      } else if (static_cast<unsigned char>(escape) >= 0x80) {
        // jinja2 escapes what is not ASCII before it unescapes: the backslash then stands for itself.
        const auto code = static_cast<uint32_t>(next_code_point(raw, i));
        text += code < 0x100     ? fmt::format("\\x{:02x}", code)
                : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                                 : fmt::format("\\U{:08x}", code);
      } else {
        text += '\\';
      }
    }
    return text;
  }

  std::string source_;
  std::string_view where_;
  std::vector<Token> tokens_;
  size_t pos_ = 0;
  size_t counted_ = 0;
  int line_ = 1;
  bool is_line_start_ = true;
};

}  // namespace

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData: return "text";
    case TokenKind::kVariableBegin: return "'{{'";
    case TokenKind::kVariableEnd: return "'}}'";
    case TokenKind::kBlockBegin: return "'{%'";
    case TokenKind::kBlockEnd: return "'%}'";
    case TokenKind::kName: return fmt::format("name '{}'", token.text);
    case TokenKind::kString: return "a string";
    case TokenKind::kInteger:
    case TokenKind::kFloat: return fmt::format("number {}", token.text);
    case TokenKind::kOperator: return fmt::format("'{}'", token.text);
    case TokenKind::kEnd: return "the end of the template";
  }
  return {};
}

std::vector<Token> tokenize(std::string_view source, std::string_view where) {
  if (!is_valid_utf8(source))
    throw Error(ErrorKind::kFormat,
                {.where = std::string(where), .expected = "UTF-8", .found = "other bytes", .mend = {}});
  return Lexer(normalize_newlines(source), where).run();
}

}  // namespace sinter::text::jinja
