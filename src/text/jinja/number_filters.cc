#include "text/jinja/number_filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/runtime.h"

namespace sinter::text::jinja {
namespace {

constexpr double kTwo63 = 9223372036854775808.0;

// Underscores are allowed between digits only; empty when one is elsewhere.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string plain;
  const auto is_digit = [&](size_t at) {
    return at < text.size() && ((text[at] >= '0' && text[at] <= '9') || (text[at] | 0x20) >= 'a');
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_')
      plain += text[i];
    else if (i == 0 || !is_digit(i - 1) || text[i - 1] == '_' || !is_digit(i + 1) || text[i + 1] == '_')
      return std::nullopt;
  }
  return plain;
}

// int(text, base); empty where Python raises ValueError.
std::optional<int64_t> parse_int(Runtime& runtime, std::string_view text, int64_t base) {
  text = strip_right(strip_left(text));
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  const char letter = base == 16 ? 'x' : base == 8 ? 'o' : base == 2 ? 'b' : '\0';
  if (letter != '\0' && text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == letter) {
    text.remove_prefix(2);
    if (text.starts_with('_')) text.remove_prefix(1);
  }
  const auto digits = without_underscores(text);
  if (!digits || digits->empty() || digits->front() == '-') return std::nullopt;
  const std::string number = (is_negative ? "-" : "") + *digits;
  int64_t value = 0;
  const auto result =
      std::from_chars(number.data(), number.data() + number.size(), value, static_cast<int>(base));
  if (result.ptr != number.data() + number.size()) return std::nullopt;
  if (result.ec == std::errc::result_out_of_range) runtime.fail_limit("bits in an integer", 64);
  return result.ec == std::errc() ? std::optional(value) : std::nullopt;
}

// float(text); empty where Python raises ValueError.
std::optional<double> parse_float(std::string_view text) {
  text = strip_right(strip_left(text));
  const auto plain = without_underscores(text);
  if (!plain) return std::nullopt;
  std::string_view number = *plain;
  const bool is_negative = number.starts_with('-');
  if (is_negative || number.starts_with('+')) number.remove_prefix(1);
  const std::string word = lower(number);
  double value = 0;
  if (word == "inf" || word == "infinity") {
    value = INFINITY;
  } else if (word == "nan") {
    value = NAN;
  } else {
    if (number.empty() || (number[0] != '.' && (number[0] < '0' || number[0] > '9'))) return std::nullopt;
    const auto result = std::from_chars(number.data(), number.data() + number.size(), value);
    if (result.ptr != number.data() + number.size()) return std::nullopt;
    // Too large or too small for from_chars, which then leaves `value` alone: strtod gives inf or 0.
    if (result.ec != std::errc()) value = std::strtod(std::string(number).c_str(), nullptr);
  }
  return is_negative ? -value : value;
}

std::optional<int64_t> truncate(Runtime& runtime, double value) {
  if (!std::isfinite(value)) return std::nullopt;
  if (!(std::abs(value) < kTwo63)) runtime.fail_limit("bits in an integer", 64);
  return static_cast<int64_t>(value);
}

int64_t round_integer(Runtime& runtime, int64_t value, int64_t precision) {
  if (precision >= 0) return value;
  if (precision < -18) return 0;
  int64_t unit = 1;
  for (int64_t i = 0; i < -precision; ++i) unit *= 10;
  // Half to even.
  const int64_t down = binary(runtime, Binary::kFloorDivide, value, unit).integer();
  const int64_t rest = value - down * unit;
  const bool goes_up = rest > unit - rest || (rest == unit - rest && down % 2 != 0);
  return binary(runtime, Binary::kMultiply, goes_up ? down + 1 : down, unit).integer();
}

double round_float(double value, int64_t precision) {
  if (!std::isfinite(value) || precision > 323) return value;
  if (precision < -308) return std::copysign(0.0, value);
  if (precision >= 0) {
    // The C library rounds the exact decimal value half to even, as Python does.
    const std::string text = fmt::format("{:.{}f}", value, precision);
    return std::strtod(text.c_str(), nullptr);
  }
  const double unit = std::pow(10.0, static_cast<double>(-precision));
  return std::nearbyint(value / unit) * unit;
}

}  // namespace

Value abs_filter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind(runtime, "abs", {}, 0);
  if (value.is_undefined()) runtime.fail_undefined(value);
  if (value.is<double>()) return std::abs(value.as<double>());
  if (!value.is_integral()) runtime.fail(fmt::format("abs: expected a number, found '{}'", type_name(value)));
  return value.integer() < 0 ? unary(runtime, Unary::kMinus, value) : Value(value.integer());
}

Value int_filter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind(runtime, "int", {"default", "base"}, 0);
  if (value.is_undefined()) runtime.fail_undefined(value);
  int64_t base = 10;
  if (bound[1]) {
    if (!bound[1]->is_integral()) runtime.fail("int: the base must be an integer");
    base = bound[1]->integer();
    if (base < 2 || base > 36) runtime.fail_unsupported(fmt::format("the base {} of the filter 'int'", base));
  }
  std::optional<int64_t> number;
  if (value.is_integral()) {
    number = value.integer();
  } else if (value.is<double>()) {
    number = truncate(runtime, value.as<double>());
    if (!number && std::isinf(value.as<double>())) runtime.fail("int: infinity is not an integer");
  } else if (value.is_text()) {
    number = parse_int(runtime, value.text(), base);
    if (!number)
      if (const auto parsed = parse_float(value.text())) number = truncate(runtime, *parsed);
  }
  return number ? Value(*number) : bound[0].value_or(int64_t{0});
}

Value float_filter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind(runtime, "float", {"default"}, 0);
  if (value.is_undefined()) runtime.fail_undefined(value);
  if (value.is_number()) return value.number();
  const auto parsed = value.is_text() ? parse_float(value.text()) : std::nullopt;
  return parsed ? Value(*parsed) : bound[0].value_or(0.0);
}

Value round_filter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind(runtime, "round", {"precision", "method"}, 0);
  const std::string method = bound[1] ? str(runtime, *bound[1]) : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    runtime.fail(fmt::format("round: expected the method common, ceil or floor, found '{}'", method));
  if (value.is_undefined()) runtime.fail_undefined(value);
  if (!value.is_number()) runtime.fail(fmt::format("round: expected a number, found '{}'", type_name(value)));
  if (bound[0] && !bound[0]->is_integral()) runtime.fail("round: the precision must be an integer");
  const int64_t precision = bound[0] ? bound[0]->integer() : 0;
  if (method == "common") {
    if (value.is_integral()) return round_integer(runtime, value.integer(), precision);
    return round_float(value.as<double>(), precision);
  }
  const Value scale = binary(runtime, Binary::kPower, int64_t{10}, precision);
  const Value scaled = binary(runtime, Binary::kMultiply, value, scale);
  const auto whole =
      truncate(runtime, method == "ceil" ? std::ceil(scaled.number()) : std::floor(scaled.number()));
  if (!whole) runtime.fail("round: infinity and NaN have no whole part");
  return binary(runtime, Binary::kDivide, *whole, scale);
}

}  // namespace sinter::text::jinja
