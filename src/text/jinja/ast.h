// A parsed template. Depth is bounded when nodes are made (`kMaxTreeDepth`), so that walking may recurse.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/filters.h"
#include "text/jinja/value.h"

namespace sinter::text::jinja {

inline constexpr int kMaxTreeDepth = 150;

// An interned name: equal names of one template have equal addresses.
using Symbol = const std::string*;

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> keywords;
  ExprPtr more_positional, more_keywords;  // *args and **kwargs; may be null
};

struct Constant {
  Value value;
};
struct Name {
  Symbol name;
};
struct ListLiteral {
  std::vector<ExprPtr> items;
  List::Flavour flavour;
};
struct DictLiteral {
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};
struct Attribute {
  ExprPtr object;
  std::string name;
};
struct Subscript {
  ExprPtr object, index;
};
struct Slice {
  ExprPtr object, start, stop, step;
};  // the last three may be null
struct Call {
  ExprPtr callee;
  CallArguments arguments;
};
struct FilterCall {
  ExprPtr input;
  const Filter* filter;
  CallArguments arguments;
};  // null input: a block's text
struct TestCall {
  ExprPtr input;
  const Test* test;
  CallArguments arguments;
};
struct Unary {
  enum Op { kNot, kMinus, kPlus } op;
  ExprPtr operand;
};
struct Binary {
  enum Op { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower } op;
  ExprPtr left, right;
};
struct Logical {
  bool is_and;
  ExprPtr left, right;
};
struct Concat {
  std::vector<ExprPtr> items;
};
struct Compare {
  enum Op { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };
  ExprPtr first;
  std::vector<std::pair<Op, ExprPtr>> rest;
};
struct Conditional {
  ExprPtr test, then, otherwise;
};  // null otherwise: undefined

struct Expr {
  using Node = std::variant<Constant, Name, ListLiteral, DictLiteral, Attribute, Subscript, Slice, Call,
                            FilterCall, TestCall, Unary, Binary, Logical, Concat, Compare, Conditional>;
  int line;
  int depth;
  Node node;
};

struct Target {
  Symbol name = nullptr;      // plain name, or the namespace
  std::string attribute;      // of the namespace; empty for a plain name
  std::vector<Target> items;  // unpacked; then `name` is null
};

struct Stmt;
using Body = std::vector<Stmt>;

struct Signature {
  std::vector<Symbol> names;
  std::vector<ExprPtr> defaults;  // of the last ones
};
struct MacroBody {
  std::string name;
  Signature signature;
  Body body;
  // Whether the body reads these: then surplus arguments are allowed.
  bool uses_varargs = false, uses_kwargs = false, uses_caller = false;
};

struct Data {
  std::string text;
};
struct Print {
  ExprPtr value;
};
struct If {
  std::vector<std::pair<ExprPtr, Body>> branches;
  Body otherwise;
};
struct For {
  Target target;
  ExprPtr items, test;
  Body body, otherwise;
};  // test may be null
struct Set {
  Target target;
  ExprPtr value;
};
struct SetBlock {
  Target target;
  ExprPtr filter;
  Body body;
};  // filter may be null
struct Macro {
  Symbol name;
  std::shared_ptr<const MacroBody> macro;
};
struct CallBlock {
  ExprPtr call;
  std::shared_ptr<const MacroBody> caller;
};
struct FilterBlock {
  ExprPtr filter;
  Body body;
};
struct With {
  std::vector<std::pair<Target, ExprPtr>> values;
  Body body;
};
struct Generation {
  Body body;
};  // Hugging Face's mark around what the assistant says
struct Break {};
struct Continue {};

struct Stmt {
  using Node = std::variant<Data, Print, If, For, Set, SetBlock, Macro, CallBlock, FilterBlock, With,
                            Generation, Break, Continue>;
  int line;
  Node node;
};

}  // namespace sinter::text::jinja
