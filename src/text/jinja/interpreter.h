// Walks the tree of a template.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/parser.h"
#include "text/jinja/runtime.h"

namespace sinter::text::jinja {

// Variables of one block; inner ones hide outer ones, and what is set in them ends with them. Loops and
// macros open a scope, {% if %} does not.
struct Scope {
  std::shared_ptr<Scope> outer;
  std::vector<std::pair<Symbol, Value>> variables;

  Value* find(Symbol name);
  void set(Symbol name, Value value);
};
using ScopePtr = std::shared_ptr<Scope>;

class Interpreter {
 public:
  // `parsed` must outlive it. `now` is what strftime_now() prints.
  Interpreter(const ParsedTemplate& parsed, Runtime& runtime, std::time_t now)
      : parsed_(parsed), runtime_(runtime), now_(now) {}
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;
  ~Interpreter();

  std::string run(const ScopePtr& variables);

 private:
  enum class Flow { kNext, kBreak, kContinue };

  Flow execute(const Body& body, const ScopePtr& scope);
  Flow execute(const Data& node, const ScopePtr& scope);
  Flow execute(const Print& node, const ScopePtr& scope);
  Flow execute(const If& node, const ScopePtr& scope);
  Flow execute(const For& node, const ScopePtr& scope);
  Flow execute(const Set& node, const ScopePtr& scope);
  Flow execute(const SetBlock& node, const ScopePtr& scope);
  Flow execute(const Macro& node, const ScopePtr& scope);
  Flow execute(const CallBlock& node, const ScopePtr& scope);
  Flow execute(const FilterBlock& node, const ScopePtr& scope);
  Flow execute(const With& node, const ScopePtr& scope);
  Flow execute(const Generation& node, const ScopePtr& scope);
  Flow execute(const Break& node, const ScopePtr& scope);
  Flow execute(const Continue& node, const ScopePtr& scope);

  Value evaluate(const Expr& expr, const ScopePtr& scope);
  Value evaluate(const Constant& node, int line, const ScopePtr& scope);
  Value evaluate(const Name& node, int line, const ScopePtr& scope);
  Value evaluate(const ListLiteral& node, int line, const ScopePtr& scope);
  Value evaluate(const DictLiteral& node, int line, const ScopePtr& scope);
  Value evaluate(const Attribute& node, int line, const ScopePtr& scope);
  Value evaluate(const Subscript& node, int line, const ScopePtr& scope);
  Value evaluate(const Slice& node, int line, const ScopePtr& scope);
  Value evaluate(const Call& node, int line, const ScopePtr& scope);
  Value evaluate(const FilterCall& node, int line, const ScopePtr& scope);
  Value evaluate(const TestCall& node, int line, const ScopePtr& scope);
  Value evaluate(const Unary& node, int line, const ScopePtr& scope);
  Value evaluate(const Binary& node, int line, const ScopePtr& scope);
  Value evaluate(const Logical& node, int line, const ScopePtr& scope);
  Value evaluate(const Concat& node, int line, const ScopePtr& scope);
  Value evaluate(const Compare& node, int line, const ScopePtr& scope);
  Value evaluate(const Conditional& node, int line, const ScopePtr& scope);

  bool is_true(const Expr& expr, const ScopePtr& scope);
  Arguments evaluate_arguments(const CallArguments& arguments, const ScopePtr& scope);
  // `caller` is what a {% call %} block passes besides.
  Value call(const Call& node, int line, const ScopePtr& scope, std::optional<Value> caller);
  Value call_value(const Value& callee, const Arguments& arguments);
  Value call_macro(const MacroBody& macro, const ScopePtr& closure, const Arguments& arguments);
  Value make_macro(const std::shared_ptr<const MacroBody>& macro, const ScopePtr& closure);
  // What `body` writes, instead of writing it.
  std::string capture(const Body& body, const ScopePtr& scope, Flow& flow);
  Value filter_captured(const Expr& filters, std::string text, const ScopePtr& scope);
  void assign(const Target& target, Value value, const ScopePtr& scope, bool allows_attribute = true);
  void write(std::string_view text);
  ScopePtr open(const ScopePtr& outer);

  const ParsedTemplate& parsed_;
  Runtime& runtime_;
  std::time_t now_;
  std::string* out_ = nullptr;
  const Value* captured_ = nullptr;  // input of a block's filter
  // Scopes that a macro refers to, and that may in turn hold the macro: emptied at the end.
  std::vector<ScopePtr> closures_;
};

}  // namespace sinter::text::jinja
