#include "text/jinja/expression_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace sinter::text::jinja {
namespace {

int deepest(const ExprPtr& expr) { return expr ? expr->depth : 0; }
int deepest(const std::vector<ExprPtr>& exprs) {
  int depth = 0;
  for (const ExprPtr& expr : exprs) depth = std::max(depth, deepest(expr));
  return depth;
}
int deepest(const auto& pairs) {
  int depth = 0;
  for (const auto& [first, second] : pairs) {
    depth = std::max(depth, deepest(second));
    if constexpr (std::is_same_v<std::decay_t<decltype(first)>, ExprPtr>)
      depth = std::max(depth, deepest(first));
  }
  return depth;
}
int deepest(const CallArguments& arguments) {
  return std::max({deepest(arguments.positional), deepest(arguments.keywords),
                   deepest(arguments.more_positional), deepest(arguments.more_keywords)});
}

struct ChildDepth {
  int operator()(const Constant&) const { return 0; }
  int operator()(const Name&) const { return 0; }
  int operator()(const ListLiteral& node) const { return deepest(node.items); }
  int operator()(const DictLiteral& node) const { return deepest(node.entries); }
  int operator()(const Attribute& node) const { return deepest(node.object); }
  int operator()(const Subscript& node) const { return std::max(deepest(node.object), deepest(node.index)); }
  int operator()(const Slice& node) const {
    return std::max({deepest(node.object), deepest(node.start), deepest(node.stop), deepest(node.step)});
  }
  int operator()(const Call& node) const { return std::max(deepest(node.callee), deepest(node.arguments)); }
  int operator()(const FilterCall& node) const {
    return std::max(deepest(node.input), deepest(node.arguments));
  }
  int operator()(const TestCall& node) const {
    return std::max(deepest(node.input), deepest(node.arguments));
  }
  int operator()(const Unary& node) const { return deepest(node.operand); }
  int operator()(const Binary& node) const { return std::max(deepest(node.left), deepest(node.right)); }
  int operator()(const Logical& node) const { return std::max(deepest(node.left), deepest(node.right)); }
  int operator()(const Concat& node) const { return deepest(node.items); }
  int operator()(const Compare& node) const { return std::max(deepest(node.first), deepest(node.rest)); }
  int operator()(const Conditional& node) const {
    return std::max({deepest(node.test), deepest(node.then), deepest(node.otherwise)});
  }
};

Value constant_text(std::string text) { return Text{std::make_shared<const std::string>(std::move(text))}; }

}  // namespace

ExpressionParser::Nested::Nested(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.depth_ > kMaxTreeDepth) {
    --parser_.depth_;
    throw Error(ErrorKind::kLimit,
                {.where = fmt::format("{}: line {}", parser.where_, parser.peek().line),
                 .expected = fmt::format("a template nested at most {} deep", kMaxTreeDepth),
                 .found = "deeper nesting",
                 .mend = {}});
  }
}

void ExpressionParser::fail(std::string message) const {
  throw Error(ErrorKind::kFormat, {.where = fmt::format("{}: line {}", where_, peek().line),
                                   .expected = {},
                                   .found = std::move(message),
                                   .mend = {}});
}

void ExpressionParser::fail_unsupported(std::string what) const {
  throw Error(ErrorKind::kUnsupported, {.where = fmt::format("{}: line {}", where_, peek().line),
                                        .expected = {},
                                        .found = std::move(what) + " is not supported",
                                        .mend = {}});
}

void ExpressionParser::expect(TokenKind kind, std::string_view what) {
  if (peek().kind != kind) fail(fmt::format("expected {}, found {}", what, describe(peek())));
  take();
}

void ExpressionParser::expect_operator(std::string_view op) {
  if (!skip_operator(op)) fail(fmt::format("expected '{}', found {}", op, describe(peek())));
}

void ExpressionParser::expect_name(std::string_view name) {
  if (!skip_name(name)) fail(fmt::format("expected '{}', found {}", name, describe(peek())));
}

bool ExpressionParser::skip_operator(std::string_view op) {
  if (!peek().is_operator(op)) return false;
  take();
  return true;
}

bool ExpressionParser::skip_name(std::string_view name) {
  if (!peek().is_name(name)) return false;
  take();
  return true;
}

Symbol ExpressionParser::intern(std::string_view name) { return &*symbols_.emplace(name).first; }

bool ExpressionParser::is_reserved(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kConstants = {"true", "false", "none",
                                                                 "True", "False", "None"};
  return std::find(kConstants.begin(), kConstants.end(), name) != kConstants.end();
}

ExprPtr ExpressionParser::make(int line, Expr::Node node) const {
  const int depth = 1 + std::visit(ChildDepth{}, node);
  if (depth > kMaxTreeDepth) {
    throw Error(ErrorKind::kLimit,
                {.where = fmt::format("{}: line {}", where_, line),
                 .expected = fmt::format("an expression nested at most {} deep", kMaxTreeDepth),
                 .found = "deeper nesting",
                 .mend = {}});
  }
  return std::make_unique<Expr>(Expr{line, depth, std::move(node)});
}

ExprPtr ExpressionParser::parse_tuple(std::string_view end, bool with_conditional, bool in_parentheses) {
  const int line = peek().line;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  const auto is_end = [&] {
    return peek().kind == TokenKind::kVariableEnd || peek().kind == TokenKind::kBlockEnd ||
           peek().is_operator(")") || (!end.empty() && peek().is_name(end));
  };
  while (!is_end()) {
    items.push_back(parse_expression(with_conditional));
    if (!skip_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && items.size() == 1) return std::move(items[0]);
  if (!is_tuple && !in_parentheses) fail(fmt::format("expected an expression, found {}", describe(peek())));
  return make(line, ListLiteral{std::move(items), List::Flavour::kTuple});
}

ExprPtr ExpressionParser::parse_expression(bool with_conditional) {
  const Nested nested(*this);
  int line = peek().line;
  ExprPtr value = parse_or();
  while (with_conditional && skip_name("if")) {
    ExprPtr test = parse_or();
    ExprPtr otherwise = skip_name("else") ? parse_expression() : nullptr;
    value = make(line, Conditional{std::move(test), std::move(value), std::move(otherwise)});
    line = peek().line;
  }
  return value;
}

ExprPtr ExpressionParser::parse_or() {
  ExprPtr left = parse_and();
  for (int line = peek().line; skip_name("or"); line = peek().line) {
    ExprPtr right = parse_and();
    left = make(line, Logical{false, std::move(left), std::move(right)});
  }
  return left;
}

ExprPtr ExpressionParser::parse_and() {
  ExprPtr left = parse_not();
  for (int line = peek().line; skip_name("and"); line = peek().line) {
    ExprPtr right = parse_not();
    left = make(line, Logical{true, std::move(left), std::move(right)});
  }
  return left;
}

ExprPtr ExpressionParser::parse_not() {
  const int line = peek().line;
  if (!skip_name("not")) return parse_compare();
  const Nested nested(*this);
  return make(line, Unary{Unary::kNot, parse_not()});
}

ExprPtr ExpressionParser::parse_compare() {
  static constexpr std::pair<std::string_view, Compare::Op> kOps[] = {
      {"==", Compare::kEqual},     {"!=", Compare::kNotEqual}, {"<", Compare::kLess},
      {"<=", Compare::kLessEqual}, {">", Compare::kGreater},   {">=", Compare::kGreaterEqual},
  };
  const int line = peek().line;
  ExprPtr first = parse_sum();
  std::vector<std::pair<Compare::Op, ExprPtr>> rest;
  while (true) {
    const auto* op = std::find_if(std::begin(kOps), std::end(kOps),
                                  [&](const auto& candidate) { return peek().is_operator(candidate.first); });
    if (op != std::end(kOps)) {
      take();
      rest.emplace_back(op->second, parse_sum());
    } else if (skip_name("in")) {
      rest.emplace_back(Compare::kIn, parse_sum());
    } else if (peek().is_name("not") && peek(1).is_name("in")) {
      take();
      take();
      rest.emplace_back(Compare::kNotIn, parse_sum());
    } else {
      break;
    }
  }
  return rest.empty() ? std::move(first) : make(line, Compare{std::move(first), std::move(rest)});
}

ExprPtr ExpressionParser::parse_sum() {
  ExprPtr left = parse_concat();
  while (peek().is_operator("+") || peek().is_operator("-")) {
    const Token op = take();
    ExprPtr right = parse_concat();
    left = make(op.line,
                Binary{op.text == "+" ? Binary::kAdd : Binary::kSubtract, std::move(left), std::move(right)});
  }
  return left;
}

ExprPtr ExpressionParser::parse_concat() {
  const int line = peek().line;
  ExprPtr first = parse_product();
  if (!peek().is_operator("~")) return first;
  std::vector<ExprPtr> items;
  items.push_back(std::move(first));
  while (skip_operator("~")) items.push_back(parse_product());
  return make(line, Concat{std::move(items)});
}

ExprPtr ExpressionParser::parse_product() {
  static constexpr std::pair<std::string_view, Binary::Op> kOps[] = {
      {"*", Binary::kMultiply}, {"/", Binary::kDivide}, {"//", Binary::kFloorDivide}, {"%", Binary::kModulo}};
  ExprPtr left = parse_power();
  while (true) {
    const auto* op = std::find_if(std::begin(kOps), std::end(kOps),
                                  [&](const auto& candidate) { return peek().is_operator(candidate.first); });
    if (op == std::end(kOps)) return left;
    const int line = take().line;
    ExprPtr right = parse_power();
    left = make(line, Binary{op->second, std::move(left), std::move(right)});
  }
}

ExprPtr ExpressionParser::parse_power() {
  ExprPtr left = parse_unary();
  while (peek().is_operator("**")) {  // to the left, unlike in Python
    const int line = take().line;
    ExprPtr right = parse_unary();
    left = make(line, Binary{Binary::kPower, std::move(left), std::move(right)});
  }
  return left;
}

ExprPtr ExpressionParser::parse_unary(bool with_filters) {
  const Nested nested(*this);
  const int line = peek().line;
  ExprPtr value;
  if (skip_operator("-"))
    value = make(line, Unary{Unary::kMinus, parse_unary(false)});
  else if (skip_operator("+"))
    value = make(line, Unary{Unary::kPlus, parse_unary(false)});
  else
    value = parse_primary();
  value = parse_postfix(std::move(value));
  return with_filters ? parse_filters_and_tests(std::move(value)) : std::move(value);
}

ExprPtr ExpressionParser::parse_primary() {
  const int line = peek().line;
  switch (peek().kind) {
    case TokenKind::kName: return parse_name_or_constant();
    case TokenKind::kString: {
      std::string text = take().text;
      while (peek().kind == TokenKind::kString) text += take().text;
      return make(line, Constant{constant_text(std::move(text))});
    }
    case TokenKind::kInteger: return make(line, Constant{take().integer});
    case TokenKind::kFloat: return make(line, Constant{take().number});
    case TokenKind::kOperator:
      if (skip_operator("(")) {
        ExprPtr inner = parse_tuple({}, true, true);
        expect_operator(")");
        return inner;
      }
      if (peek().is_operator("[")) return parse_list();
      if (peek().is_operator("{")) return parse_dict();
      [[fallthrough]];
    default: fail(fmt::format("expected an expression, found {}", describe(peek())));
  }
}

ExprPtr ExpressionParser::parse_name_or_constant() {
  const Token token = take();
  if (token.text == "true" || token.text == "True") return make(token.line, Constant{true});
  if (token.text == "false" || token.text == "False") return make(token.line, Constant{false});
  if (token.text == "none" || token.text == "None") return make(token.line, Constant{None{}});
  if (token.text == "varargs") special_names_.varargs = true;
  if (token.text == "kwargs") special_names_.kwargs = true;
  if (token.text == "caller") special_names_.caller = true;
  return make(token.line, Name{intern(token.text)});
}

ExprPtr ExpressionParser::parse_list() {
  const int line = take().line;
  std::vector<ExprPtr> items;
  while (!peek().is_operator("]")) {
    items.push_back(parse_expression());
    if (!skip_operator(",")) break;
  }
  expect_operator("]");
  return make(line, ListLiteral{std::move(items), List::Flavour::kList});
}

ExprPtr ExpressionParser::parse_dict() {
  const int line = take().line;
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
  while (!peek().is_operator("}")) {
    ExprPtr key = parse_expression();
    expect_operator(":");
    entries.emplace_back(std::move(key), parse_expression());
    if (!skip_operator(",")) break;
  }
  expect_operator("}");
  return make(line, DictLiteral{std::move(entries)});
}

ExprPtr ExpressionParser::parse_postfix(ExprPtr object) {
  while (true) {
    const int line = peek().line;
    if (peek().is_operator(".") || peek().is_operator("[")) {
      object = parse_subscript(std::move(object));
    } else if (peek().is_operator("(")) {
      CallArguments arguments = parse_call_arguments();
      object = make(line, Call{std::move(object), std::move(arguments)});
    } else {
      return object;
    }
  }
}

ExprPtr ExpressionParser::parse_filters_and_tests(ExprPtr input) {
  while (true) {
    const int line = peek().line;
    if (peek().is_operator("|")) {
      input = parse_filters(std::move(input), false);
    } else if (peek().is_name("is")) {
      input = parse_test(std::move(input));
    } else if (peek().is_operator("(")) {
      CallArguments arguments = parse_call_arguments();
      input = make(line, Call{std::move(input), std::move(arguments)});
    } else {
      return input;
    }
  }
}

ExprPtr ExpressionParser::parse_filters(ExprPtr input, bool starts_with_name) {
  while (starts_with_name || peek().is_operator("|")) {
    if (!std::exchange(starts_with_name, false)) take();
    if (peek().kind != TokenKind::kName)
      fail(fmt::format("expected the name of a filter, found {}", describe(peek())));
    const Filter* filter = find_filter(peek().text);
    if (filter == nullptr) fail_unsupported(fmt::format("the filter '{}'", peek().text));
    const int line = take().line;
    CallArguments arguments;
    if (peek().is_operator("(")) arguments = parse_call_arguments();
    input = make(line, FilterCall{std::move(input), filter, std::move(arguments)});
  }
  return input;
}

ExprPtr ExpressionParser::parse_test(ExprPtr input) {
  const int line = take().line;
  const bool is_negated = skip_name("not");
  if (peek().kind != TokenKind::kName)
    fail(fmt::format("expected the name of a test, found {}", describe(peek())));
  const Test* test = find_test(peek().text);
  if (test == nullptr) fail_unsupported(fmt::format("the test '{}'", peek().text));
  take();
  CallArguments arguments;
  const Token& next = peek();
  const bool is_argument = (next.kind == TokenKind::kName && !next.is_name("else") && !next.is_name("or") &&
                            !next.is_name("and")) ||
                           next.kind == TokenKind::kString || next.kind == TokenKind::kInteger ||
                           next.kind == TokenKind::kFloat || next.is_operator("[") || next.is_operator("{");
  if (next.is_operator("(")) {
    arguments = parse_call_arguments();
  } else if (is_argument) {
    if (next.is_name("is")) fail("tests cannot be chained with 'is'");
    arguments.positional.push_back(parse_postfix(parse_primary()));
  }
  ExprPtr result = make(line, TestCall{std::move(input), test, std::move(arguments)});
  return is_negated ? make(line, Unary{Unary::kNot, std::move(result)}) : std::move(result);
}

ExprPtr ExpressionParser::parse_subscript(ExprPtr object) {
  const Token open = take();
  if (open.text == ".") {
    if (peek().kind == TokenKind::kName) return make(open.line, Attribute{std::move(object), take().text});
    if (peek().kind != TokenKind::kInteger)
      fail(fmt::format("expected a name or a number after '.', found {}", describe(peek())));
    ExprPtr index = make(open.line, Constant{take().integer});
    return make(open.line, Subscript{std::move(object), std::move(index)});
  }
  const auto is_end = [&] { return peek().is_operator("]") || peek().is_operator(","); };
  ExprPtr index = peek().is_operator(":") ? nullptr : parse_expression();
  const bool is_slice = skip_operator(":");
  ExprPtr stop, step;
  if (is_slice) {
    if (!is_end() && !peek().is_operator(":")) stop = parse_expression();
    if (skip_operator(":") && !is_end()) step = parse_expression();
  }
  if (peek().is_operator(",")) fail_unsupported("an index with a comma");
  expect_operator("]");
  if (is_slice)
    return make(open.line, Slice{std::move(object), std::move(index), std::move(stop), std::move(step)});
  return make(open.line, Subscript{std::move(object), std::move(index)});
}

CallArguments ExpressionParser::parse_call_arguments() {
  CallArguments arguments;
  take();
  while (!peek().is_operator(")")) {
    if (skip_operator("*")) {
      if (arguments.more_positional || arguments.more_keywords) fail("misplaced '*' in a call");
      arguments.more_positional = parse_expression();
    } else if (skip_operator("**")) {
      if (arguments.more_keywords) fail("misplaced '**' in a call");
      arguments.more_keywords = parse_expression();
    } else if (peek().kind == TokenKind::kName && peek(1).is_operator("=")) {
      if (arguments.more_keywords) fail("an argument after '**'");
      std::string name = take().text;
      take();
      arguments.keywords.emplace_back(std::move(name), parse_expression());
    } else {
      if (arguments.more_positional || arguments.more_keywords || !arguments.keywords.empty())
        fail("a positional argument after others");
      arguments.positional.push_back(parse_expression());
    }
    if (!skip_operator(",")) break;
  }
  expect_operator(")");
  return arguments;
}

}  // namespace sinter::text::jinja
