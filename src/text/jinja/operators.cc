#include "text/jinja/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja/loop.h"
#include "text/jinja/methods.h"
#include "text/jinja/python_text.h"
#include "text/jinja/runtime.h"

namespace sinter::text::jinja {
namespace {

constexpr std::string_view kNames[] = {"+", "-", "*", "/", "//", "%", "**"};

[[noreturn]] void fail_overflow(Runtime& runtime) { runtime.fail_limit("bits in an integer", 64); }

[[noreturn]] void fail_operands(Runtime& runtime, Binary::Op op, const Value& left, const Value& right) {
  if (left.is_undefined()) runtime.fail_undefined(left);
  if (right.is_undefined()) runtime.fail_undefined(right);
  const auto is_view = [](const Value& value) {
    return value.is_list() && value.list().flavour >= List::Flavour::kKeys;
  };
  if (op == Binary::kSubtract && (is_view(left) || is_view(right)))
    runtime.fail_unsupported("'-' between keys, which are a set in Python,");
  runtime.fail(fmt::format("'{}' is not defined between '{}' and '{}'", kNames[op], type_name(left),
                           type_name(right)));
}

int64_t power(Runtime& runtime, int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_overflow(runtime);
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) fail_overflow(runtime);
  }
  return result;
}

Value integer_op(Runtime& runtime, Binary::Op op, int64_t left, int64_t right) {
  int64_t result = 0;
  switch (op) {
    case Binary::kAdd:
      if (__builtin_add_overflow(left, right, &result)) fail_overflow(runtime);
      return result;
    case Binary::kSubtract:
      if (__builtin_sub_overflow(left, right, &result)) fail_overflow(runtime);
      return result;
    case Binary::kMultiply:
      if (__builtin_mul_overflow(left, right, &result)) fail_overflow(runtime);
      return result;
    case Binary::kFloorDivide:
    case Binary::kModulo:
      if (right == 0) runtime.fail("division by zero");
      if (right == -1) {  // INT64_MIN / -1 does not fit
        if (op == Binary::kModulo) return int64_t{0};
        if (__builtin_sub_overflow(int64_t{0}, left, &result)) fail_overflow(runtime);
        return result;
      }
      // Python rounds down and gives the remainder the sign of the divisor.
      result = left % right;
      if (result != 0 && (result < 0) != (right < 0)) result += right;
      return op == Binary::kModulo ? result : (left - result) / right;
    case Binary::kPower:
      if (right >= 0) return power(runtime, left, right);
      if (left == 0) runtime.fail("0 to a negative power");
      return std::pow(static_cast<double>(left), static_cast<double>(right));
    case Binary::kDivide: break;
  }
  if (right == 0) runtime.fail("division by zero");
  return static_cast<double>(left) / static_cast<double>(right);
}

Value float_op(Runtime& runtime, Binary::Op op, double left, double right) {
  switch (op) {
    case Binary::kAdd: return left + right;
    case Binary::kSubtract: return left - right;
    case Binary::kMultiply: return left * right;
    case Binary::kPower: {
      if (left == 0 && right < 0) runtime.fail("0 to a negative power");
      if (left < 0 && std::isfinite(left) && std::isfinite(right) && right != std::floor(right))
        runtime.fail_unsupported("a complex number");
      const double result = std::pow(left, right);
      if (std::isinf(result) && std::isfinite(left) && std::isfinite(right))
        runtime.fail("the power is too large");
      return result;
    }
    case Binary::kDivide:
      if (right == 0) runtime.fail("division by zero");
      return left / right;
    case Binary::kFloorDivide:
    case Binary::kModulo: break;
  }
  if (right == 0) runtime.fail("division by zero");
  double remainder = std::fmod(left, right);
  double quotient = (left - remainder) / right;
  if (remainder != 0) {
    if ((right < 0) != (remainder < 0)) {
      remainder += right;
      quotient -= 1;
    }
  } else {
    remainder = std::copysign(0.0, right);
  }
  if (op == Binary::kModulo) return remainder;
  if (quotient == 0) return std::copysign(0.0, left / right);
  double whole = std::floor(quotient);
  if (quotient - whole > 0.5) whole += 1;
  return whole;
}

Value repeat(Runtime& runtime, const Value& value, int64_t count) {
  const auto times = static_cast<size_t>(std::max<int64_t>(count, 0));
  const bool is_text = value.is_text();
  const size_t unit = is_text ? value.text().size() : value.list().items.size();
  size_t total = 0;
  if (__builtin_mul_overflow(unit, times * (is_text ? 1 : sizeof(Value)), &total) ||
      times > runtime.limits().max_bytes)
    total = unit == 0 ? 0 : SIZE_MAX;
  runtime.allocate(total);
  if (is_text) {
    std::string text;
    text.reserve(total);
    for (size_t i = 0; unit > 0 && i < times; ++i) text += value.text();
    return Text{std::make_shared<const std::string>(std::move(text)), value.is_safe_text()};
  }
  std::vector<Value> items;
  for (size_t i = 0; unit > 0 && i < times; ++i)
    items.insert(items.end(), value.list().items.begin(), value.list().items.end());
  return runtime.list(std::move(items), value.list().flavour);
}

bool is_repeatable(const Value& value) {
  return value.is_text() || (value.is_list() && value.list().flavour <= List::Flavour::kTuple);
}

Value add_texts(Runtime& runtime, const Value& left, const Value& right) {
  const bool is_safe = left.is_safe_text() || right.is_safe_text();
  const auto part = [&](const Value& value) {
    return is_safe && !value.is_safe_text() ? escape_html(value.text()) : value.text();
  };
  if (!is_safe) runtime.allocate(left.text().size() + right.text().size());
  std::string sum = is_safe ? part(left) + part(right) : left.text() + right.text();
  if (is_safe) runtime.allocate(sum.size());
  return Text{std::make_shared<const std::string>(std::move(sum)), is_safe};
}

Value bound_method(Runtime& runtime, const Value& self, const Method& method) {
  if (method.call == nullptr)
    runtime.fail_unsupported(fmt::format("the method '{}' of '{}'", method.name, type_name(self)));
  return runtime.function(
      std::string(method.name),
      [self, call = method.call](Runtime& rt, const Arguments& arguments) {
        return call(rt, self, arguments);
      },
      runtime.nested(depth(self)));
}

// Attributes as Python's getattr finds them; empty when there is none.
std::optional<Value> find_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  if (object.is<Namespace*>()) {
    const Value* value = object.as<Namespace*>()->find(name);
    return value == nullptr ? std::nullopt : std::optional(*value);
  }
  if (object.is<std::shared_ptr<Loop>>()) return object.as<std::shared_ptr<Loop>>()->attribute(runtime, name);
  if (is_mutator(object, name))
    return Value::undefined(
        fmt::format("the method '{}' would change a '{}', which templates may not", name, type_name(object)));
  if (const Method* method = find_method(object, name)) return bound_method(runtime, object, *method);
  return std::nullopt;
}

std::optional<Value> find_item(Runtime& runtime, const Value& object, const Value& key) {
  if (object.is_dict()) {
    if (!is_hashable(key)) return std::nullopt;
    const Value* value = key.is_text() ? find(runtime, object.dict(), std::string_view(key.text()))
                                       : find(runtime, object.dict(), key);
    return value == nullptr ? std::nullopt : std::optional(*value);
  }
  if (!key.is_integral()) return std::nullopt;
  int64_t index = key.integer();
  if (object.is_list() && object.list().is_indexable()) {
    const auto& items = object.list().items;
    if (index < 0) index += static_cast<int64_t>(items.size());
    if (index < 0 || index >= static_cast<int64_t>(items.size())) return std::nullopt;
    return items[static_cast<size_t>(index)];
  }
  if (object.is_text()) {
    const std::string& text = object.text();
    runtime.scan(text.size());
    if (index < 0) index += num_code_points(text);
    if (index < 0) return std::nullopt;
    for (size_t pos = 0; pos < text.size(); --index) {
      const size_t start = pos;
      next_code_point(text, pos);
      if (index == 0) return runtime.text(text.substr(start, pos - start));
    }
  }
  return std::nullopt;
}

std::string missing(Runtime&, const Value& object, std::string_view name) {
  return fmt::format("a '{}' has no attribute or key '{}'", type_name(object), name);
}

// Python's rule for a slice over `size` items: first index, last (exclusive), step, count.
struct Range {
  int64_t start, stop, step, count;
};

Range resolve_slice(Runtime& runtime, int64_t size, const Value& start, const Value& stop,
                    const Value& step) {
  const auto bound = [&](const Value& value, int64_t otherwise) {
    if (value.is_none()) return otherwise;
    if (!value.is_integral()) runtime.fail(fmt::format("a slice needs integers, not '{}'", type_name(value)));
    return value.integer();
  };
  Range range{};
  range.step = bound(step, 1);
  if (range.step == 0) runtime.fail("a slice cannot have the step 0");
  range.step = std::max(range.step, -INT64_MAX);
  const int64_t lowest = range.step < 0 ? -1 : 0;
  const int64_t highest = range.step < 0 ? size - 1 : size;
  const auto clamp = [&](int64_t index) {
    if (index < 0) index = std::max(index, -size - 1) + size;
    return std::clamp(index, lowest, highest);
  };
  range.start = start.is_none() ? (range.step < 0 ? highest : lowest) : clamp(bound(start, 0));
  range.stop = stop.is_none() ? (range.step < 0 ? lowest : highest) : clamp(bound(stop, 0));
  const int64_t span = range.step < 0 ? range.start - range.stop : range.stop - range.start;
  const int64_t stride = range.step < 0 ? -range.step : range.step;
  range.count = span <= 0 ? 0 : (span - 1) / stride + 1;
  return range;
}

}  // namespace

Value binary(Runtime& runtime, Binary::Op op, const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) {
    if (left.is_integral() && right.is_integral())
      return integer_op(runtime, op, left.integer(), right.integer());
    return float_op(runtime, op, left.number(), right.number());
  }
  if (op == Binary::kAdd) {
    if (left.is_text() && right.is_text()) return add_texts(runtime, left, right);
    if (left.is_list() && right.is_list() && left.list().flavour == right.list().flavour &&
        left.list().flavour <= List::Flavour::kTuple) {
      runtime.allocate((left.list().items.size() + right.list().items.size()) * sizeof(Value));
      std::vector<Value> items = left.list().items;
      items.insert(items.end(), right.list().items.begin(), right.list().items.end());
      return runtime.list(std::move(items), left.list().flavour);
    }
  }
  if (op == Binary::kMultiply) {
    if (is_repeatable(left) && right.is_integral()) return repeat(runtime, left, right.integer());
    if (left.is_integral() && is_repeatable(right)) return repeat(runtime, right, left.integer());
  }
  if (op == Binary::kModulo && left.is_text()) {
    if (left.is_safe_text()) runtime.fail_unsupported("'%' on a string marked safe");
    return format_percent(runtime, left.text(), right);
  }
  fail_operands(runtime, op, left, right);
}

Value unary(Runtime& runtime, Unary::Op op, const Value& operand) {
  if (op == Unary::kNot) return !is_true(runtime, operand);
  if (operand.is_undefined()) runtime.fail_undefined(operand);
  if (!operand.is_number())
    runtime.fail(fmt::format("a sign before '{}' has no meaning", type_name(operand)));
  if (operand.is<double>()) return op == Unary::kMinus ? -operand.as<double>() : operand.as<double>();
  int64_t result = operand.integer();
  if (op == Unary::kMinus && __builtin_sub_overflow(int64_t{0}, result, &result)) fail_overflow(runtime);
  return result;
}

bool compare(Runtime& runtime, Compare::Op op, const Value& left, const Value& right) {
  switch (op) {
    case Compare::kEqual: return equals(runtime, left, right);
    case Compare::kNotEqual: return !equals(runtime, left, right);
    case Compare::kLess: return is_less(runtime, left, right);
    case Compare::kGreater: return is_less(runtime, right, left);
    // Not "not greater": NaN is neither.
    case Compare::kLessEqual: return is_less(runtime, left, right) || equals(runtime, left, right);
    case Compare::kGreaterEqual: return is_less(runtime, right, left) || equals(runtime, left, right);
    case Compare::kIn: return contains(runtime, right, left);
    case Compare::kNotIn: return !contains(runtime, right, left);
  }
  return false;
}

Value get_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  if (object.is_undefined()) runtime.fail_undefined(object);
  if (std::optional<Value> attribute = find_attribute(runtime, object, name)) return *std::move(attribute);
  if (object.is_dict())
    if (const Value* value = find(runtime, object.dict(), name)) return *value;
  return Value::undefined(missing(runtime, object, name));
}

Value get_item(Runtime& runtime, const Value& object, const Value& key) {
  if (object.is_undefined()) runtime.fail_undefined(object);
  if (std::optional<Value> item = find_item(runtime, object, key)) return *std::move(item);
  if (key.is_text()) {
    if (std::optional<Value> attribute = find_attribute(runtime, object, key.text()))
      return *std::move(attribute);
    return Value::undefined(missing(runtime, object, key.text()));
  }
  return Value::undefined(fmt::format("a '{}' has no such element", type_name(object)));
}

Value slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (object.is_undefined()) runtime.fail_undefined(object);
  if (object.is_text()) {
    runtime.allocate(object.text().size() * sizeof(char32_t));
    const std::u32string codes = to_code_points(object.text());
    const Range range = resolve_slice(runtime, static_cast<int64_t>(codes.size()), start, stop, step);
    std::u32string piece;
    for (int64_t i = 0, at = range.start; i < range.count; ++i, at += range.step)
      piece += codes[static_cast<size_t>(at)];
    return Text{std::make_shared<const std::string>(to_utf8(piece)), object.is_safe_text()};
  }
  if (!object.is_list() || !object.list().is_indexable())
    runtime.fail(fmt::format("a '{}' cannot be sliced", type_name(object)));
  const List& list = object.list();
  const Range range = resolve_slice(runtime, static_cast<int64_t>(list.items.size()), start, stop, step);
  runtime.allocate(static_cast<size_t>(range.count) * sizeof(Value));
  auto piece = std::make_shared<List>();
  piece->flavour = list.flavour;
  piece->depth = list.depth;
  for (int64_t i = 0, at = range.start; i < range.count; ++i, at += range.step)
    piece->items.push_back(list.items[static_cast<size_t>(at)]);
  if (list.flavour == List::Flavour::kRange) {
    piece->start = list.start + range.start * list.step;
    piece->stop = list.start + range.stop * list.step;
    piece->step = list.step * range.step;
  }
  return ListPtr(std::move(piece));
}

std::optional<Value> call_method(Runtime& runtime, const Value& object, std::string_view name,
                                 const Arguments& arguments) {
  const Method* method = find_method(object, name);
  if (method == nullptr || method->call == nullptr) return std::nullopt;
  return method->call(runtime, object, arguments);
}

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&#34;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace sinter::text::jinja
