#include "text/jinja/parser.h"

#include <fmt/format.h>

#include "base/error.h"
#include "text/jinja/expression_parser.h"

namespace sinter::text::jinja {
namespace {

// Statements; expressions are the base class.
class Parser : public ExpressionParser {
 public:
  Parser(std::vector<Token> tokens, std::string_view where, std::set<std::string, std::less<>>& symbols)
      : ExpressionParser(std::move(tokens), where, symbols) {}

  Body parse_template() {
    Body body = parse_body({});
    if (peek().kind != TokenKind::kEnd) fail_unknown_tag();
    return body;
  }

 private:
  using EndTags = std::initializer_list<std::string_view>;

  // Statements up to one of `ends`, whose name is then the next token; without any, to the end.
  Body parse_body(EndTags ends) {
    const Nested nested(*this);
    Body body;
    while (peek().kind != TokenKind::kEnd) {
      const int line = peek().line;
      switch (peek().kind) {
        case TokenKind::kData: body.push_back({line, Data{take().text}}); break;
        case TokenKind::kVariableBegin:
          take();
          body.push_back({line, Print{parse_tuple()}});
          expect(TokenKind::kVariableEnd, "'}}'");
          break;
        default:
          expect(TokenKind::kBlockBegin, "a tag");
          for (const std::string_view end : ends)
            if (peek().is_name(end)) return body;
          parse_statement(line, body);
          expect(TokenKind::kBlockEnd, "'%}'");
      }
    }
    if (ends.size() > 0)
      fail(fmt::format("expected {{% {} %}}, found the end of the template", *(ends.end() - 1)));
    return body;
  }

  // The rest of a tag that opens a block, its body, and the name of the tag that ends it.
  Body parse_block(EndTags ends) {
    skip_operator(":");
    expect(TokenKind::kBlockEnd, "'%}'");
    return parse_body(ends);
  }

  Body parse_whole_block(std::string_view end) {
    Body body = parse_block({end});
    take();
    return body;
  }

  [[noreturn]] void fail_unknown_tag() {
    const std::string& name = peek().text;
    for (const std::string_view known : {"block", "extends", "include", "import", "from", "autoescape"})
      if (name == known) fail_unsupported(fmt::format("the tag '{}'", name));
    fail(fmt::format("unexpected tag '{}'", name));
  }

  void parse_statement(int line, Body& body) {
    if (peek().kind != TokenKind::kName)
      fail(fmt::format("expected the name of a tag, found {}", describe(peek())));
    const std::string name = peek().text;
    const auto put = [&](Stmt::Node node) { body.push_back({line, std::move(node)}); };
    if (name == "print") {
      take();
      while (peek().kind != TokenKind::kBlockEnd) {
        put(Print{parse_expression()});
        if (!skip_operator(",")) break;
      }
    } else if (name == "if") {
      put(parse_if());
    } else if (name == "for") {
      put(parse_for());
    } else if (name == "set") {
      put(parse_set());
    } else if (name == "macro") {
      put(parse_macro());
    } else if (name == "call") {
      put(parse_call_block());
    } else if (name == "filter") {
      take();
      ExprPtr filter = parse_filters(nullptr, true);
      put(FilterBlock{std::move(filter), parse_whole_block("endfilter")});
    } else if (name == "with") {
      put(parse_with());
    } else if (name == "generation") {
      take();
      put(Generation{parse_function_body("endgeneration")});
    } else if (name == "break" || name == "continue") {
      if (num_loops_ == 0) fail(fmt::format("'{}' outside of a loop", name));
      take();
      if (name == "break")
        put(Break{});
      else
        put(Continue{});
    } else {
      fail_unknown_tag();
    }
  }

  If parse_if() {
    If node;
    while (true) {
      take();  // if, elif
      ExprPtr test = parse_tuple({}, false);
      Body body = parse_block({"elif", "else", "endif"});
      node.branches.emplace_back(std::move(test), std::move(body));
      if (!peek().is_name("elif")) break;
    }
    if (take().text == "else") node.otherwise = parse_whole_block("endif");
    return node;
  }

  For parse_for() {
    take();
    For node;
    node.target = parse_target(false, true);
    expect_name("in");
    node.items = parse_tuple("recursive", false);
    if (skip_name("if")) node.test = parse_expression();
    if (peek().is_name("recursive")) fail_unsupported("a recursive loop");
    ++num_loops_;
    node.body = parse_block({"else", "endfor"});
    --num_loops_;
    if (take().text == "else") node.otherwise = parse_whole_block("endfor");
    return node;
  }

  Stmt::Node parse_set() {
    take();
    Target target = parse_target(true, true);
    if (skip_operator("=")) {
      ExprPtr value = parse_tuple();
      return Set{std::move(target), std::move(value)};
    }
    ExprPtr filter = peek().is_operator("|") ? parse_filters(nullptr, false) : nullptr;
    return SetBlock{std::move(target), std::move(filter), parse_whole_block("endset")};
  }

  With parse_with() {
    take();
    With node;
    while (peek().kind != TokenKind::kBlockEnd) {
      if (!node.values.empty()) expect_operator(",");
      Target target = parse_target(false, true);
      expect_operator("=");
      node.values.emplace_back(std::move(target), parse_expression());
    }
    node.body = parse_whole_block("endwith");
    return node;
  }

  Macro parse_macro() {
    take();
    const Symbol name = parse_name("the name of a macro");
    return Macro{name, parse_macro_body(*name, parse_signature(), "endmacro")};
  }

  CallBlock parse_call_block() {
    take();
    Signature signature;
    if (peek().is_operator("(")) signature = parse_signature();
    ExprPtr call = parse_expression();
    if (!std::holds_alternative<Call>(call->node)) fail("expected a call after 'call'");
    return CallBlock{std::move(call), parse_macro_body("caller", std::move(signature), "endcall")};
  }

  std::shared_ptr<const MacroBody> parse_macro_body(std::string name, Signature signature,
                                                    std::string_view end) {
    auto macro = std::make_shared<MacroBody>();
    macro->name = std::move(name);
    macro->signature = std::move(signature);
    const SpecialNames outer = std::exchange(special_names_, {});
    macro->body = parse_function_body(end);
    macro->uses_varargs = special_names_.varargs;
    macro->uses_kwargs = special_names_.kwargs;
    macro->uses_caller = special_names_.caller;
    special_names_ = outer;
    return macro;
  }

  Signature parse_signature() {
    Signature signature;
    expect_operator("(");
    while (!peek().is_operator(")")) {
      if (!signature.names.empty()) expect_operator(",");
      signature.names.push_back(parse_name("the name of a parameter"));
      if (skip_operator("="))
        signature.defaults.push_back(parse_expression());
      else if (!signature.defaults.empty())
        fail("a parameter without a default follows one with a default");
    }
    take();
    return signature;
  }

  Target parse_target(bool allows_attribute, bool allows_tuple) {
    Target target = parse_one_target(allows_attribute, allows_tuple);
    if (!allows_tuple || !peek().is_operator(",")) return target;
    Target tuple;
    tuple.items.push_back(std::move(target));
    while (skip_operator(",")) {
      const bool is_end = peek().is_name("in") || peek().is_operator("=") || peek().is_operator(")") ||
                          peek().kind == TokenKind::kBlockEnd;
      if (is_end) break;
      tuple.items.push_back(parse_one_target(allows_attribute, allows_tuple));
    }
    return tuple;
  }

  Target parse_one_target(bool allows_attribute, bool allows_tuple) {
    const Nested nested(*this);
    if (allows_tuple && skip_operator("(")) {
      Target inner = parse_target(allows_attribute, true);
      expect_operator(")");
      return inner;
    }
    Target target;
    target.name = parse_name("the name of a variable");
    if (allows_attribute && skip_operator(".")) target.attribute = *parse_name("the name of an attribute");
    return target;
  }

  Symbol parse_name(std::string_view what) {
    if (peek().kind != TokenKind::kName) fail(fmt::format("expected {}, found {}", what, describe(peek())));
    if (is_reserved(peek().text))
      fail(fmt::format("expected {}, found the reserved name '{}'", what, peek().text));
    return intern(take().text);
  }

  // A function of its own: the loops around it cannot be left from there.
  Body parse_function_body(std::string_view end) {
    const int outer = std::exchange(num_loops_, 0);
    Body body = parse_whole_block(end);
    num_loops_ = outer;
    return body;
  }

  int num_loops_ = 0;
};

}  // namespace

ParsedTemplate parse(std::string_view source, std::string_view where) {
  ParsedTemplate parsed;
  const auto intern = [&](const char* name) { return &*parsed.symbols.emplace(name).first; };
  parsed.names = {intern("loop"), intern("caller"), intern("varargs"), intern("kwargs")};
  parsed.body = Parser(tokenize(source, where), where, parsed.symbols).parse_template();
  return parsed;
}

}  // namespace sinter::text::jinja
