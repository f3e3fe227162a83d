// Expressions, by recursive descent in jinja2's order of precedence.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace sinter::text::jinja {

class ExpressionParser {
 public:
  ExpressionParser(std::vector<Token> tokens, std::string_view where,
                   std::set<std::string, std::less<>>& symbols)
      : tokens_(std::move(tokens)), where_(where), symbols_(symbols) {}

 protected:
  // One level of nesting of the source; bounds the parser's own recursion.
  class Nested {
   public:
    explicit Nested(ExpressionParser& parser);
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    ~Nested() { --parser_.depth_; }

   private:
    ExpressionParser& parser_;
  };

  // Names that mean something of their own in a macro, when its body reads them.
  struct SpecialNames {
    bool varargs = false, kwargs = false, caller = false;
  };

  ExprPtr parse_expression(bool with_conditional = true);
  // Expressions with commas between them are a tuple. `end` is a name that ends it, beside the usual.
  ExprPtr parse_tuple(std::string_view end = {}, bool with_conditional = true, bool in_parentheses = false);
  // "| name(...)" repeated; `starts_with_name` for {% filter name %}. A null `input` is a block's text.
  ExprPtr parse_filters(ExprPtr input, bool starts_with_name);

  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(pos_ + ahead, tokens_.size() - 1)]; }
  Token take() { return pos_ + 1 < tokens_.size() ? std::move(tokens_[pos_++]) : tokens_.back(); }
  void expect(TokenKind kind, std::string_view what);
  void expect_operator(std::string_view op);
  void expect_name(std::string_view name);
  bool skip_operator(std::string_view op);
  bool skip_name(std::string_view name);
  Symbol intern(std::string_view name);
  static bool is_reserved(std::string_view name);

  [[noreturn]] void fail(std::string message) const;
  [[noreturn]] void fail_unsupported(std::string what) const;

  SpecialNames special_names_;

 private:
  ExprPtr make(int line, Expr::Node node) const;
  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_compare();
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filters = true);
  ExprPtr parse_primary();
  ExprPtr parse_name_or_constant();
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_postfix(ExprPtr object);
  ExprPtr parse_filters_and_tests(ExprPtr input);
  ExprPtr parse_test(ExprPtr input);
  ExprPtr parse_subscript(ExprPtr object);
  CallArguments parse_call_arguments();

  std::vector<Token> tokens_;
  std::string_view where_;
  std::set<std::string, std::less<>>& symbols_;
  size_t pos_ = 0;
  int depth_ = 0;
};

}  // namespace sinter::text::jinja
