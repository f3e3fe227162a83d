// The tests of the language: `x is name(arguments)`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "text/jinja/filters.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/runtime.h"

namespace sinter::text::jinja {
namespace {

#define INPUT Runtime &rt, const Value &value, const Arguments &arguments

const Value& none_given(INPUT) {
  arguments.bind(rt, "a test", {}, 0);
  return value;
}

Value one_given(Runtime& rt, const Arguments& arguments) {
  return *arguments.bind(rt, "a test", {"/other"}, 1)[0];
}

template <Compare::Op op>
bool compares(INPUT) {
  return compare(rt, op, value, one_given(rt, arguments));
}

bool has_remainder(Runtime& rt, const Value& value, const Value& divisor, int64_t wanted) {
  const Value remainder = binary(rt, Binary::kModulo, value, divisor);
  return equals(rt, remainder, wanted);
}

// str(value).isupper(), islower()
bool is_cased(INPUT, bool (*is_wanted)(char32_t), bool (*is_other)(char32_t)) {
  const std::string text = str(rt, none_given(rt, value, arguments));
  bool has_one = false;
  for (size_t pos = 0; pos < text.size();) {
    const char32_t code = next_code_point(text, pos);
    if (is_other(code)) return false;
    has_one |= is_wanted(code);
  }
  return has_one;
}

bool is_same(Runtime& rt, const Value& left, const Value& right) {
  if (left.storage().index() != right.storage().index()) return false;
  if (left.is_text()) rt.fail_unsupported("'sameas' between strings");
  if (left.is_list()) return left.as<ListPtr>() == right.as<ListPtr>();
  if (left.is_dict()) return left.as<DictPtr>() == right.as<DictPtr>();
  return equals(rt, left, right);
}

constexpr Test kTests[] = {
    {"!=", compares<Compare::kNotEqual>},
    {"<", compares<Compare::kLess>},
    {"<=", compares<Compare::kLessEqual>},
    {"==", compares<Compare::kEqual>},
    {">", compares<Compare::kGreater>},
    {">=", compares<Compare::kGreaterEqual>},
    {"boolean", [](INPUT) { return none_given(rt, value, arguments).is<bool>(); }},
    {"callable",
     [](INPUT) {
       // LoopContext and Undefined have a __call__ too.
       const Value& tested = none_given(rt, value, arguments);
       return tested.is<std::shared_ptr<const Callable>>() || tested.is<std::shared_ptr<Loop>>() ||
              tested.is_undefined();
     }},
    {"defined", [](INPUT) { return !none_given(rt, value, arguments).is_undefined(); }},
    {"divisibleby", [](INPUT) { return has_remainder(rt, value, one_given(rt, arguments), 0); }},
    {"eq", compares<Compare::kEqual>},
    {"equalto", compares<Compare::kEqual>},
    {"escaped", [](INPUT) { return none_given(rt, value, arguments).is_safe_text(); }},
    {"even", [](INPUT) { return has_remainder(rt, none_given(rt, value, arguments), int64_t{2}, 0); }},
    {"false",
     [](INPUT) {
       const Value& tested = none_given(rt, value, arguments);
       return tested.is<bool>() && !tested.as<bool>();
     }},
    {"filter",
     [](INPUT) {
       const Value& tested = none_given(rt, value, arguments);
       return tested.is_text() && find_filter(tested.text()) != nullptr;
     }},
    {"float", [](INPUT) { return none_given(rt, value, arguments).is<double>(); }},
    {"ge", compares<Compare::kGreaterEqual>},
    {"greaterthan", compares<Compare::kGreater>},
    {"gt", compares<Compare::kGreater>},
    {"in", compares<Compare::kIn>},
    {"integer", [](INPUT) { return none_given(rt, value, arguments).is<int64_t>(); }},
    {"iterable", [](INPUT) { return is_iterable(none_given(rt, value, arguments)); }},
    {"le", compares<Compare::kLessEqual>},
    {"lessthan", compares<Compare::kLess>},
    {"lower", [](INPUT) { return is_cased(rt, value, arguments, is_lower, is_upper); }},
    {"lt", compares<Compare::kLess>},
    {"mapping", [](INPUT) { return none_given(rt, value, arguments).is_dict(); }},
    {"ne", compares<Compare::kNotEqual>},
    {"none", [](INPUT) { return none_given(rt, value, arguments).is_none(); }},
    {"number", [](INPUT) { return none_given(rt, value, arguments).is_number(); }},
    {"odd", [](INPUT) { return has_remainder(rt, none_given(rt, value, arguments), int64_t{2}, 1); }},
    {"sameas", [](INPUT) { return is_same(rt, value, one_given(rt, arguments)); }},
    {"sequence",
     [](INPUT) {
       const Value& tested = none_given(rt, value, arguments);
       return tested.is_text() || tested.is_dict() || (tested.is_list() && tested.list().is_indexable()) ||
              tested.is_undefined();
     }},
    {"string", [](INPUT) { return none_given(rt, value, arguments).is_text(); }},
    {"test",
     [](INPUT) {
       const Value& tested = none_given(rt, value, arguments);
       return tested.is_text() && find_test(tested.text()) != nullptr;
     }},
    {"true",
     [](INPUT) {
       const Value& tested = none_given(rt, value, arguments);
       return tested.is<bool>() && tested.as<bool>();
     }},
    {"undefined", [](INPUT) { return none_given(rt, value, arguments).is_undefined(); }},
    {"upper", [](INPUT) { return is_cased(rt, value, arguments, is_upper, is_lower); }},
};

#undef INPUT

}  // namespace

const Test* find_test(std::string_view name) {
  const auto* test = std::find_if(std::begin(kTests), std::end(kTests),
                                  [&](const Test& candidate) { return candidate.name == name; });
  return test == std::end(kTests) ? nullptr : test;
}

}  // namespace sinter::text::jinja
