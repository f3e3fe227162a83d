// Template text to tokens, with the white space control that Hugging Face renders with: trim_blocks and
// lstrip_blocks on, one trailing newline dropped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sinter::text::jinja {

enum class TokenKind : uint8_t {
  kData,           // text between tags
  kVariableBegin,  // {{
  kVariableEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,
  kString,  // unescaped
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind;
  int line;
  std::string text;
  int64_t integer = 0;
  double number = 0;

  bool is_operator(std::string_view op) const { return kind == TokenKind::kOperator && text == op; }
  bool is_name(std::string_view name) const { return kind == TokenKind::kName && text == name; }
};

// What the token is, for errors: "name 'x'", "end of the template".
std::string describe(const Token& token);

// `where` names the template in errors. The last token is kEnd. Throws Error(kFormat) with the line.
std::vector<Token> tokenize(std::string_view source, std::string_view where);

}  // namespace sinter::text::jinja
