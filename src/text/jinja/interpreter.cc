#include "text/jinja/interpreter.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/globals.h"
#include "text/jinja/loop.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"

namespace sinter::text::jinja {

Value* Scope::find(Symbol name) {
  for (Scope* scope = this; scope != nullptr; scope = scope->outer.get())
    for (auto& [symbol, value] : scope->variables)
      if (symbol == name) return &value;
  return nullptr;
}

void Scope::set(Symbol name, Value value) {
  for (auto& [symbol, old] : variables)
    if (symbol == name) {
      old = std::move(value);
      return;
    }
  variables.emplace_back(name, std::move(value));
}

Interpreter::~Interpreter() {
  for (const ScopePtr& scope : closures_) scope->variables.clear();
}

std::string Interpreter::run(const ScopePtr& variables) {
  std::string text;
  out_ = &text;
  execute(parsed_.body, variables);
  return text;
}

void Interpreter::write(std::string_view text) {
  runtime_.allocate(text.size());
  if (out_->size() + text.size() > runtime_.limits().max_output_bytes)
    runtime_.fail_limit("bytes of output", runtime_.limits().max_output_bytes);
  *out_ += text;
}

ScopePtr Interpreter::open(const ScopePtr& outer) {
  auto scope = std::make_shared<Scope>();
  scope->outer = outer;
  return scope;
}

// Statements

Interpreter::Flow Interpreter::execute(const Body& body, const ScopePtr& scope) {
  const Runtime::Nested nested(runtime_);
  for (const Stmt& stmt : body) {
    runtime_.step();
    runtime_.line = stmt.line;
    const Flow flow = std::visit([&](const auto& node) { return execute(node, scope); }, stmt.node);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute(const Data& node, const ScopePtr&) {
  write(node.text);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute(const Print& node, const ScopePtr& scope) {
  const Value value = evaluate(*node.value, scope);
  if (value.is_text()) {
    write(value.text());
  } else {
    std::string text;
    append_str(runtime_, value, text);
    write(text);
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute(const If& node, const ScopePtr& scope) {
  for (const auto& [test, body] : node.branches)
    if (is_true(*test, scope)) return execute(body, scope);
  return execute(node.otherwise, scope);
}

Interpreter::Flow Interpreter::execute(const For& node, const ScopePtr& scope) {
  const ListPtr items = iterate(runtime_, evaluate(*node.items, scope));
  Loop::Test test;
  if (node.test)
    test = [&](const Value& item) {
      const ScopePtr inner = open(scope);
      assign(node.target, item, inner, false);
      return is_true(*node.test, inner);
    };
  const auto loop = std::make_shared<Loop>(items, std::move(test));
  // Also when the body throws: `loop` may live on in a namespace.
  const struct Finish {
    Loop& loop;
    ~Finish() { loop.finish(); }
  } finish{*loop};
  bool is_empty = true;
  while (loop->advance()) {
    is_empty = false;
    runtime_.step(4);  // a scope is made
    const ScopePtr inner = open(scope);
    inner->set(parsed_.names.loop, loop);
    assign(node.target, loop->current(), inner, false);
    if (execute(node.body, inner) == Flow::kBreak) break;
  }
  return is_empty ? execute(node.otherwise, open(scope)) : Flow::kNext;
}

Interpreter::Flow Interpreter::execute(const Set& node, const ScopePtr& scope) {
  assign(node.target, evaluate(*node.value, scope), scope);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute(const SetBlock& node, const ScopePtr& scope) {
  Flow flow = Flow::kNext;
  std::string text = capture(node.body, open(scope), flow);
  if (flow != Flow::kNext) return flow;
  Value value =
      node.filter ? filter_captured(*node.filter, std::move(text), scope) : runtime_.text(std::move(text));
  assign(node.target, std::move(value), scope);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute(const Macro& node, const ScopePtr& scope) {
  scope->set(node.name, make_macro(node.macro, scope));
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute(const CallBlock& node, const ScopePtr& scope) {
  std::string text;
  append_str(runtime_,
             call(std::get<Call>(node.call->node), node.call->line, scope, make_macro(node.caller, scope)),
             text);
  write(text);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute(const FilterBlock& node, const ScopePtr& scope) {
  Flow flow = Flow::kNext;
  const ScopePtr inner = open(scope);
  std::string text = capture(node.body, inner, flow);
  if (flow != Flow::kNext) return flow;
  std::string filtered;
  append_str(runtime_, filter_captured(*node.filter, std::move(text), inner), filtered);
  write(filtered);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute(const With& node, const ScopePtr& scope) {
  const ScopePtr inner = open(scope);
  for (const auto& [target, value] : node.values) assign(target, evaluate(*value, scope), inner, false);
  return execute(node.body, inner);
}

Interpreter::Flow Interpreter::execute(const Generation& node, const ScopePtr& scope) {
  return execute(node.body, open(scope));
}

Interpreter::Flow Interpreter::execute(const Break&, const ScopePtr&) { return Flow::kBreak; }
Interpreter::Flow Interpreter::execute(const Continue&, const ScopePtr&) { return Flow::kContinue; }

std::string Interpreter::capture(const Body& body, const ScopePtr& scope, Flow& flow) {
  std::string text;
  // Restored also when an error passes.
  const struct Redirect {
    std::string*& out;
    std::string* outer;
    ~Redirect() { out = outer; }
  } redirect{out_, std::exchange(out_, &text)};
  flow = execute(body, scope);
  return text;
}

Value Interpreter::filter_captured(const Expr& filters, std::string text, const ScopePtr& scope) {
  const Value value = runtime_.text(std::move(text));
  const Value* outer = std::exchange(captured_, &value);
  Value filtered = evaluate(filters, scope);
  captured_ = outer;
  return filtered;
}

void Interpreter::assign(const Target& target, Value value, const ScopePtr& scope, bool allows_attribute) {
  if (target.name == nullptr) {
    const ListPtr items = iterate(runtime_, value);
    if (items->items.size() != target.items.size())
      runtime_.fail(
          fmt::format("expected {} values to unpack, found {}", target.items.size(), items->items.size()));
    for (size_t i = 0; i < target.items.size(); ++i)
      assign(target.items[i], items->items[i], scope, allows_attribute);
  } else if (target.attribute.empty()) {
    runtime_.step();
    scope->set(target.name, std::move(value));
  } else {
    const Value* space = scope->find(target.name);
    if (space == nullptr || !space->is<Namespace*>())
      runtime_.fail(fmt::format("'{}' is not a namespace: its attribute '{}' cannot be set", *target.name,
                                target.attribute));
    Namespace& attributes = *space->as<Namespace*>();
    runtime_.step(1 + attributes.attributes.size() / 8);
    attributes.set(target.attribute, std::move(value));
  }
}

// Macros

Value Interpreter::make_macro(const std::shared_ptr<const MacroBody>& macro, const ScopePtr& closure) {
  runtime_.allocate(sizeof(Callable) + sizeof(Scope));
  if (closures_.empty() || closures_.back() != closure) closures_.push_back(closure);
  auto made = std::make_shared<Callable>();
  made->name = macro->name;
  made->is_macro = true;
  made->call = [this, macro, closure](Runtime&, const Arguments& arguments) {
    return call_macro(*macro, closure, arguments);
  };
  return std::shared_ptr<const Callable>(std::move(made));
}

Value Interpreter::call_macro(const MacroBody& macro, const ScopePtr& closure, const Arguments& arguments) {
  const auto& names = macro.signature.names;
  const ScopePtr scope = open(closure);
  std::vector<std::pair<std::string, Value>> keywords = arguments.keywords;
  const auto take_keyword = [&](std::string_view name) -> std::optional<Value> {
    const auto found =
        std::find_if(keywords.begin(), keywords.end(), [&](const auto& pair) { return pair.first == name; });
    if (found == keywords.end()) return std::nullopt;
    Value value = std::move(found->second);
    keywords.erase(found);
    return value;
  };
  const size_t num_without_default = names.size() - macro.signature.defaults.size();
  for (size_t i = 0; i < names.size(); ++i) {
    runtime_.step();
    std::optional<Value> value;
    if (i < arguments.positional.size())
      value = arguments.positional[i];
    else
      value = take_keyword(*names[i]);
    if (!value && i >= num_without_default)
      value = evaluate(*macro.signature.defaults[i - num_without_default], scope);
    scope->set(names[i], value ? *std::move(value)
                               : Value::undefined(fmt::format("the parameter '{}' of '{}' was not given",
                                                              *names[i], macro.name)));
  }
  const auto& special = parsed_.names;
  if (macro.uses_caller && std::find(names.begin(), names.end(), special.caller) == names.end()) {
    std::optional<Value> caller = take_keyword("caller");
    scope->set(special.caller,
               caller ? *std::move(caller) : Value::undefined("no block was passed as 'caller'"));
  }
  if (macro.uses_kwargs) {
    std::vector<std::pair<Value, Value>> entries;
    entries.reserve(keywords.size());
    for (auto& [name, value] : keywords) entries.emplace_back(runtime_.text(name), std::move(value));
    scope->set(special.kwargs, runtime_.dict(std::move(entries)));
  } else if (!keywords.empty()) {
    runtime_.fail(fmt::format("the macro '{}' takes no argument '{}'", macro.name, keywords[0].first));
  }
  const size_t num_named = std::min(names.size(), arguments.positional.size());
  std::vector<Value> surplus(arguments.positional.begin() + static_cast<std::ptrdiff_t>(num_named),
                             arguments.positional.end());
  if (macro.uses_varargs)
    scope->set(special.varargs, runtime_.list(std::move(surplus), List::Flavour::kTuple));
  else if (!surplus.empty())
    runtime_.fail(fmt::format("the macro '{}' takes at most {} arguments, {} given", macro.name, names.size(),
                              arguments.positional.size()));
  Flow flow = Flow::kNext;
  return runtime_.text(capture(macro.body, scope, flow));
}

Arguments Interpreter::evaluate_arguments(const CallArguments& arguments, const ScopePtr& scope) {
  Arguments values;
  values.positional.reserve(arguments.positional.size());
  for (const ExprPtr& expr : arguments.positional) values.positional.push_back(evaluate(*expr, scope));
  for (const auto& [name, expr] : arguments.keywords)
    values.keywords.emplace_back(name, evaluate(*expr, scope));
  if (arguments.more_positional) {
    const ListPtr more = iterate(runtime_, evaluate(*arguments.more_positional, scope));
    runtime_.allocate(more->items.size() * sizeof(Value));
    values.positional.insert(values.positional.end(), more->items.begin(), more->items.end());
  }
  if (arguments.more_keywords) {
    const Value more = evaluate(*arguments.more_keywords, scope);
    if (!more.is_dict()) runtime_.fail(fmt::format("'**' needs a dict, not '{}'", type_name(more)));
    for (const auto& [key, value] : more.dict().entries) {
      if (!key.is_text()) runtime_.fail("'**' needs keys that are strings");
      runtime_.allocate(sizeof(Value) + key.text().size());
      values.keywords.emplace_back(key.text(), value);
    }
  }
  for (size_t i = 0; i < values.keywords.size(); ++i) {
    runtime_.step(i);
    for (size_t j = 0; j < i; ++j)
      if (values.keywords[i].first == values.keywords[j].first)
        runtime_.fail(fmt::format("the argument '{}' is given twice", values.keywords[i].first));
  }
  return values;
}

Value Interpreter::call(const Call& node, int line, const ScopePtr& scope, std::optional<Value> caller) {
  const auto* attribute = std::get_if<Attribute>(&node.callee->node);
  const Value callee = evaluate(attribute != nullptr ? *attribute->object : *node.callee, scope);
  Arguments arguments = evaluate_arguments(node.arguments, scope);
  if (caller) arguments.keywords.emplace_back("caller", *std::move(caller));
  runtime_.line = line;
  if (attribute == nullptr) return call_value(callee, arguments);
  if (callee.is_safe_text())
    runtime_.fail_unsupported(fmt::format("the method '{}' on a string marked safe", attribute->name));
  if (callee.is_text()) runtime_.scan(callee.text().size());
  if (std::optional<Value> result = call_method(runtime_, callee, attribute->name, arguments))
    return *std::move(result);
  return call_value(get_attribute(runtime_, callee, attribute->name), arguments);
}

Value Interpreter::call_value(const Value& callee, const Arguments& arguments) {
  if (callee.is_undefined()) runtime_.fail_undefined(callee);
  if (callee.is<std::shared_ptr<Loop>>()) runtime_.fail_unsupported("a recursive loop");
  if (!callee.is<std::shared_ptr<const Callable>>())
    runtime_.fail(fmt::format("a '{}' cannot be called", type_name(callee)));
  const Runtime::Nested nested(runtime_);
  // Keeps the callee alive: its body may assign over the variable that holds it.
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const auto function = callee.as<std::shared_ptr<const Callable>>();
  return function->call(runtime_, arguments);
}

// Expressions

Value Interpreter::evaluate(const Expr& expr, const ScopePtr& scope) {
  const Runtime::Nested nested(runtime_);
  runtime_.step();
  runtime_.line = expr.line;
  return std::visit([&](const auto& node) { return evaluate(node, expr.line, scope); }, expr.node);
}

bool Interpreter::is_true(const Expr& expr, const ScopePtr& scope) {
  return jinja::is_true(runtime_, evaluate(expr, scope));
}

Value Interpreter::evaluate(const Constant& node, int, const ScopePtr&) { return node.value; }

Value Interpreter::evaluate(const Name& node, int, const ScopePtr& scope) {
  if (const Value* value = scope->find(node.name)) return *value;
  return global_function(runtime_, *node.name, now_);
}

Value Interpreter::evaluate(const ListLiteral& node, int, const ScopePtr& scope) {
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const ExprPtr& item : node.items) items.push_back(evaluate(*item, scope));
  return runtime_.list(std::move(items), node.flavour);
}

Value Interpreter::evaluate(const DictLiteral& node, int line, const ScopePtr& scope) {
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [key_expr, value_expr] : node.entries) {
    Value key = evaluate(*key_expr, scope);
    Value value = evaluate(*value_expr, scope);
    runtime_.line = line;
    if (!is_hashable(key)) runtime_.fail(fmt::format("'{}' cannot be a key", type_name(key)));
    const auto old = std::find_if(entries.begin(), entries.end(),
                                  [&](const auto& entry) { return equals(runtime_, entry.first, key); });
    if (old != entries.end())
      old->second = std::move(value);
    else
      entries.emplace_back(std::move(key), std::move(value));
  }
  return runtime_.dict(std::move(entries));
}

Value Interpreter::evaluate(const Attribute& node, int line, const ScopePtr& scope) {
  const Value object = evaluate(*node.object, scope);
  runtime_.line = line;
  return get_attribute(runtime_, object, node.name);
}

Value Interpreter::evaluate(const Subscript& node, int line, const ScopePtr& scope) {
  const Value object = evaluate(*node.object, scope);
  const Value index = evaluate(*node.index, scope);
  runtime_.line = line;
  return get_item(runtime_, object, index);
}

Value Interpreter::evaluate(const Slice& node, int line, const ScopePtr& scope) {
  const Value object = evaluate(*node.object, scope);
  const auto bound = [&](const ExprPtr& expr) { return expr ? evaluate(*expr, scope) : Value(None{}); };
  const Value start = bound(node.start), stop = bound(node.stop), step = bound(node.step);
  runtime_.line = line;
  return slice(runtime_, object, start, stop, step);
}

Value Interpreter::evaluate(const Call& node, int line, const ScopePtr& scope) {
  return call(node, line, scope, std::nullopt);
}

Value Interpreter::evaluate(const FilterCall& node, int line, const ScopePtr& scope) {
  const Value input = node.input ? evaluate(*node.input, scope) : *captured_;
  const Arguments arguments = evaluate_arguments(node.arguments, scope);
  runtime_.line = line;
  return apply(runtime_, *node.filter, input, arguments);
}

Value Interpreter::evaluate(const TestCall& node, int line, const ScopePtr& scope) {
  const Value input = evaluate(*node.input, scope);
  const Arguments arguments = evaluate_arguments(node.arguments, scope);
  runtime_.line = line;
  return node.test->holds(runtime_, input, arguments);
}

Value Interpreter::evaluate(const Unary& node, int line, const ScopePtr& scope) {
  const Value operand = evaluate(*node.operand, scope);
  runtime_.line = line;
  return unary(runtime_, node.op, operand);
}

Value Interpreter::evaluate(const Binary& node, int line, const ScopePtr& scope) {
  const Value left = evaluate(*node.left, scope);
  const Value right = evaluate(*node.right, scope);
  runtime_.line = line;
  return binary(runtime_, node.op, left, right);
}

Value Interpreter::evaluate(const Logical& node, int, const ScopePtr& scope) {
  Value left = evaluate(*node.left, scope);
  return jinja::is_true(runtime_, left) == node.is_and ? evaluate(*node.right, scope) : left;
}

Value Interpreter::evaluate(const Concat& node, int, const ScopePtr& scope) {
  std::string text;
  for (const ExprPtr& item : node.items) append_str(runtime_, evaluate(*item, scope), text);
  return runtime_.text(std::move(text));
}

Value Interpreter::evaluate(const Compare& node, int line, const ScopePtr& scope) {
  Value left = evaluate(*node.first, scope);
  for (const auto& [op, expr] : node.rest) {
    Value right = evaluate(*expr, scope);
    runtime_.line = line;
    if (!compare(runtime_, op, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::evaluate(const Conditional& node, int line, const ScopePtr& scope) {
  if (is_true(*node.test, scope)) return evaluate(*node.then, scope);
  if (node.otherwise) return evaluate(*node.otherwise, scope);
  return Value::undefined(
      fmt::format("the inline 'if' of line {} has no 'else' and its test is false", line));
}

}  // namespace sinter::text::jinja
