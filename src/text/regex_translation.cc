#include "text/regex_translation.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <utility>

#include "base/error.h"
#include "text/utf8.h"

namespace sinter::text {
namespace {

constexpr int kMaxDepth = 100;
constexpr int64_t kMaxRepeat = 65535;  // PCRE2's

bool is_ascii_alnum(char32_t c) { return c < 0x80 && std::isalnum(static_cast<int>(c)) != 0; }

void append_literal(std::string& out, char32_t c) {
  if (is_ascii_alnum(c))
    out.push_back(static_cast<char>(c));
  else if (c < 0x80)
    out += fmt::format("\\x{{{:02x}}}", static_cast<uint32_t>(c));
  else
    append_utf8(out, c);
}

// The short name of a general category, from either of its names; empty for anything else.
std::string_view general_category(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"c", "C"},      {"cc", "Cc"},  {"cf", "Cf"},    {"cn", "Cn"},         {"co", "Co"},   {"l", "L"},
      {"ll", "Ll"},    {"lm", "Lm"},  {"lo", "Lo"},    {"lt", "Lt"},         {"lu", "Lu"},   {"m", "M"},
      {"mc", "Mc"},    {"me", "Me"},  {"mn", "Mn"},    {"n", "N"},           {"nd", "Nd"},   {"nl", "Nl"},
      {"no", "No"},    {"p", "P"},    {"pc", "Pc"},    {"pd", "Pd"},         {"pe", "Pe"},   {"pf", "Pf"},
      {"pi", "Pi"},    {"po", "Po"},  {"ps", "Ps"},    {"s", "S"},           {"sc", "Sc"},   {"sk", "Sk"},
      {"sm", "Sm"},    {"so", "So"},  {"z", "Z"},      {"zl", "Zl"},         {"zp", "Zp"},   {"zs", "Zs"},
      {"letter", "L"}, {"mark", "M"}, {"number", "N"}, {"punctuation", "P"}, {"symbol", "S"}};
  for (const auto& [known, short_name] : kNames)
    if (known == name) return short_name;
  return {};
}

class Translator {
 public:
  Translator(std::string_view pattern, std::string_view where) : where_(where), source_(pattern) {
    for (size_t i = 0; i < pattern.size();) pattern_.push_back(next_code_point(pattern, i));
  }

  std::string translate() {
    alternatives(0, false);
    if (position_ < pattern_.size()) unsupported("an unmatched ')'", position_);
    return std::move(out_);
  }

 private:
  struct Atom {
    bool repeatable;
    char32_t literal = 0;  // 0: not a single character
  };

  [[noreturn]] void unsupported(std::string_view construct, size_t position) const {
    throw Error(
        ErrorKind::kUnsupported,
        {.where = std::string(where_),
         .expected = "a regular expression without such a construct",
         .found = fmt::format("{} at character {} of \"{}\"", construct, position + 1,
                              source_.size() <= 200 ? std::string(source_)
                                                    : replace_invalid_utf8(source_.substr(0, 200)) + "..."),
         .mend = "PCRE2 and Oniguruma would match it differently"});
  }

  bool at_end() const { return position_ == pattern_.size(); }
  char32_t peek(size_t ahead = 0) const {
    return position_ + ahead < pattern_.size() ? pattern_[position_ + ahead] : U'\0';
  }
  bool take(std::u32string_view text) {
    if (std::u32string_view(pattern_).substr(position_, text.size()) != text) return false;
    position_ += text.size();
    return true;
  }

  // Up to the ')' that closes the group, which stays.
  void alternatives(int depth, bool ignore_case) {
    if (depth > kMaxDepth) unsupported("a group nested over 100 deep", position_);
    // Ruby's (?i) reaches to the end of the group over all branches, which PCRE2's does only from the
    // start of the group.
    if (take(U"(?i)")) {
      out_ += "(?i)";
      ignore_case = true;
    }
    char32_t previous = 0;
    while (!at_end() && peek() != ')') {
      if (take(U"|")) {
        out_ += '|';
        previous = 0;
        continue;
      }
      const size_t position = position_;
      const size_t start = out_.size();
      Atom atom = this->atom(depth, ignore_case);
      if (quantifiers(start, atom.repeatable)) atom.literal = 0;
      if (ignore_case) check_fold(previous, atom.literal, position);
      previous = atom.literal;
    }
  }

  // Oniguruma folds some pairs into one character ("ss" matches U+00DF), PCRE2 none.
  void check_fold(char32_t previous, char32_t literal, size_t position) const {
    if (previous == 0 || literal == 0) return;
    const std::string pair = {static_cast<char>(std::tolower(static_cast<int>(previous))),
                              static_cast<char>(std::tolower(static_cast<int>(literal)))};
    for (const std::string_view folded : {"ss", "st", "ff", "fi", "fl"})
      if (pair == folded) unsupported(fmt::format("'{}' under (?i)", pair), position - 1);
  }

  Atom atom(int depth, bool ignore_case) {
    const size_t position = position_;
    const char32_t c = pattern_[position_++];
    switch (c) {
      case '(': return group(depth, ignore_case, position);
      case '[': set(ignore_case, position); return {true};
      case '.': out_ += '.'; return {true};
      case '^': out_ += '^'; return {false};
      case '$': out_ += '$'; return {false};
      case '\\': return escape(ignore_case, position);
      case '*':
      case '+':
      case '?': unsupported("a quantifier with nothing to repeat", position);
      default: return literal(c, ignore_case, position);
    }
  }

  Atom literal(char32_t c, bool ignore_case, size_t position) {
    if (ignore_case && c >= 0x80) unsupported("a character beyond ASCII under (?i)", position);
    append_literal(out_, c);
    return {true, c};
  }

  Atom group(int depth, bool ignore_case, size_t position) {
    bool repeatable = true;
    if (take(U"?:")) {
      out_ += "(?:";
    } else if (take(U"?i:")) {
      out_ += "(?i:";
      ignore_case = true;
    } else if (take(U"?-i:")) {
      out_ += "(?-i:";
      ignore_case = false;
    } else if (take(U"?=")) {
      out_ += "(?=";
      repeatable = false;
    } else if (take(U"?!")) {
      out_ += "(?!";
      repeatable = false;
    } else if (take(U"?<=")) {
      out_ += "(?<=";
      repeatable = false;
    } else if (take(U"?<!")) {
      out_ += "(?<!";
      repeatable = false;
    } else if (take(U"?>")) {
      out_ += "(?>";
    } else if (peek() == '?' || peek() == '*') {
      std::string text = "(";
      for (size_t i = 0; i < 3 && position_ + i < pattern_.size(); ++i) append_utf8(text, peek(i));
      unsupported(fmt::format("the group '{}'", text), position);
    } else {
      out_ += "(?:";
    }
    alternatives(depth + 1, ignore_case);
    if (!take(U")")) unsupported("a group without its ')'", position);
    out_ += ')';
    return {repeatable};
  }

  // Everything that repeats the atom written from out_[start]. A second quantifier repeats the first.
  bool quantifiers(size_t start, bool repeatable) {
    bool any = false;
    for (;;) {
      const size_t position = position_;
      std::string text;
      bool is_interval = false;
      bool is_fixed = false;
      if (peek() == '*' || peek() == '+' || peek() == '?') {
        text = static_cast<char>(peek());
        ++position_;
      } else if (std::optional<std::string> range = interval(is_fixed)) {
        text = *range;
        is_interval = true;
      } else {
        return any;
      }
      if (!repeatable) unsupported("a quantifier after an assertion", position);
      if (any) wrap(start);
      any = true;
      if (peek() == '?' && !is_fixed) {
        text += '?';
        ++position_;
      } else if (peek() == '+' && !is_interval) {
        text += '+';
        ++position_;
      }
      out_ += text;
    }
  }

  void wrap(size_t start) {
    out_.insert(start, "(?:");
    out_ += ')';
  }

  // {n}, {n,}, {n,m} or {,m}; anything else in braces is literal.
  std::optional<std::string> interval(bool& is_fixed) {
    if (peek() != '{') return std::nullopt;
    const size_t start = position_++;
    const std::optional<int64_t> low = number();
    std::optional<int64_t> high = low;
    is_fixed = true;
    if (take(U",")) {
      is_fixed = false;
      high = number();
    }
    if ((!low && !high) || !take(U"}")) {
      position_ = start;
      return std::nullopt;
    }
    if (low.value_or(0) > kMaxRepeat || high.value_or(0) > kMaxRepeat)
      unsupported("a repeat over 65535", start);
    if (high && low.value_or(0) > *high) unsupported("a repeat with swapped limits", start);
    if (is_fixed) return fmt::format("{{{}}}", *low);
    return high ? fmt::format("{{{},{}}}", low.value_or(0), *high) : fmt::format("{{{},}}", *low);
  }

  std::optional<int64_t> number() {
    if (peek() < '0' || peek() > '9') return std::nullopt;
    int64_t value = 0;
    for (; peek() >= '0' && peek() <= '9'; ++position_)
      value = std::min<int64_t>(value * 10 + static_cast<int64_t>(peek() - '0'), kMaxRepeat + 1);
    return value;
  }

  Atom escape(bool ignore_case, size_t position) {
    if (std::optional<char32_t> c = escaped_character(position)) return literal(*c, ignore_case, position);
    const char32_t c = pattern_[position_++];
    switch (c) {
      case 'A': out_ += "\\A"; return {false};
      case 'z': out_ += "\\z"; return {false};
      case 'Z': out_ += "\\Z"; return {false};
      case 'h': out_ += "[0-9A-Fa-f]"; return {true};
      case 'H': out_ += "[^0-9A-Fa-f]"; return {true};
      default: shorthand(c, ignore_case, position); return {true};
    }
  }

  // \s \S \d \D \p{...} \P{...}, the same inside and outside of a set.
  void shorthand(char32_t c, bool ignore_case, size_t position) {
    switch (c) {
      case 's': out_ += "\\s"; return;
      case 'S': out_ += "\\S"; return;
      case 'd': out_ += "\\d"; return;
      case 'D': out_ += "\\D"; return;
      case 'p':
      case 'P': property(c == 'P', ignore_case, position); return;
      default: {
        std::string text = "\\";
        append_utf8(text, c);
        unsupported(fmt::format("the escape '{}'", text), position);
      }
    }
  }

  void property(bool negated, bool ignore_case, size_t position) {
    if (!take(U"{")) unsupported("\\p without braces", position);
    if (ignore_case) unsupported("\\p under (?i)", position);
    if (take(U"^")) negated = !negated;
    std::string name;
    while (is_ascii_alnum(peek()) || peek() == '_') {
      name.push_back(static_cast<char>(peek()));
      ++position_;
    }
    if (name.empty() || !take(U"}")) unsupported("a \\p{} with an unusual name", position);
    std::string lower = name;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char ch) { return static_cast<char>(std::tolower(ch)); });
    const std::string_view category = general_category(lower);
    out_ += negated ? "\\P{" : "\\p{";
    // Whatever is not a category has to be a script: PCRE2 refuses other names after "sc:".
    out_ += category.empty() ? "sc:" + name : std::string(category);
    out_ += '}';
  }

  // The character that an escape stands for; nullopt (and the position before the letter) when the
  // escape is not one character.
  std::optional<char32_t> escaped_character(size_t position) {
    if (at_end()) unsupported("a backslash at the end", position);
    const char32_t c = pattern_[position_];
    if (!is_ascii_alnum(c)) {
      ++position_;
      return c;
    }
    switch (c) {
      case 't': ++position_; return U'\t';
      case 'n': ++position_; return U'\n';
      case 'r': ++position_; return U'\r';
      case 'f': ++position_; return U'\f';
      case 'v': ++position_; return U'\v';
      case 'a': ++position_; return U'\a';
      case 'e': ++position_; return char32_t{0x1B};
      case 'u': ++position_; return hexadecimal(4, 4, position);
      case 'x': {
        ++position_;
        if (take(U"{")) {
          const char32_t value = hexadecimal(1, 8, position);
          if (!take(U"}")) unsupported("an unfinished \\x{}", position);
          return value;
        }
        const char32_t value = hexadecimal(1, 2, position);
        if (value >= 0x80) unsupported("\\x of a single byte beyond ASCII", position);
        return value;
      }
      default: return std::nullopt;
    }
  }

  char32_t hexadecimal(int min_digits, int max_digits, size_t position) {
    uint64_t value = 0;
    int digits = 0;
    for (; digits < max_digits && peek() < 0x80 && std::isxdigit(static_cast<int>(peek())) != 0; ++digits) {
      const char32_t c = peek();
      value = value * 16 + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
      ++position_;
    }
    if (digits < min_digits) unsupported("a hexadecimal escape with too few digits", position);
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
      unsupported("a hexadecimal escape that is no character", position);
    return static_cast<char32_t>(value);
  }

  void set(bool ignore_case, size_t position) {
    out_ += '[';
    if (take(U"^")) out_ += '^';
    if (peek() == ']') unsupported("a set that starts with ']'", position_);
    for (bool first = true; !take(U"]"); first = false) {
      if (at_end()) unsupported("a set without its ']'", position);
      const size_t at = position_;
      if (peek() == '[') unsupported("a set in a set", at);
      if (peek() == '&' && peek(1) == '&') unsupported("an intersection of sets", at);
      const std::optional<char32_t> low = set_item(ignore_case, first);
      if (!low) continue;
      append_literal(out_, *low);
      if (peek() != '-' || peek(1) == ']') continue;
      ++position_;
      if (at_end()) unsupported("a set without its ']'", position);
      if (peek() == '[') unsupported("a set in a set", position_);
      const std::optional<char32_t> high = set_item(ignore_case, true);
      if (!high) unsupported("a range that ends with a class", at);
      if (*high < *low) unsupported("a range with swapped ends", at);
      out_ += '-';
      append_literal(out_, *high);
      if (peek() == '-' && peek(1) != ']') unsupported("a '-' after a range", position_);
    }
    out_ += ']';
  }

  // One character of a set, or nullopt when it was a class and has been written.
  std::optional<char32_t> set_item(bool ignore_case, bool may_be_minus) {
    const size_t position = position_;
    char32_t c = pattern_[position_++];
    if (c == '-' && !may_be_minus && peek() != ']') unsupported("a '-' that is no range", position);
    if (c == '\\') {
      const std::optional<char32_t> escaped = escaped_character(position);
      if (!escaped) {
        const char32_t letter = pattern_[position_++];
        if (letter == 'h')
          out_ += "0-9A-Fa-f";
        else
          shorthand(letter, ignore_case, position);
        if (peek() == '-' && peek(1) != ']') unsupported("a '-' after a class", position_);
        return std::nullopt;
      }
      c = *escaped;
    }
    if (ignore_case && c >= 0x80) unsupported("a character beyond ASCII under (?i)", position);
    return c;
  }

  std::string_view where_;
  std::string_view source_;
  std::u32string pattern_;
  size_t position_ = 0;
  std::string out_;
};

}  // namespace

std::string translate_oniguruma(std::string_view pattern, std::string_view where) {
  return Translator(pattern, where).translate();
}

std::string quote_for_pcre2(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) append_literal(out, next_code_point(text, i));
  return out;
}

}  // namespace sinter::text
