// '%' and str.format. Both share one way to write a field; what they do not cover is an error that names it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/runtime.h"

namespace sinter::text::jinja {
namespace {

constexpr int64_t kMaxWidth = 10'000;
constexpr int64_t kMaxPrecision = 300;

struct Field {
  std::string fill = " ";
  char align = '\0';  // < > ^, or = for zeros behind the sign
  char sign = '-';
  bool has_prefix = false;
  bool has_commas = false;
  int64_t width = 0;
  std::optional<int64_t> precision;
  char type = '\0';
};

std::string digits_of(uint64_t magnitude, char type) {
  switch (type) {
    case 'x': return fmt::format("{:x}", magnitude);
    case 'X': return fmt::format("{:X}", magnitude);
    case 'o': return fmt::format("{:o}", magnitude);
    case 'b': return fmt::format("{:b}", magnitude);
    default: return fmt::format("{}", magnitude);
  }
}

std::string float_digits(double magnitude, const Field& field) {
  const std::string format = fmt::format("%.{}{}", field.precision.value_or(6), field.type);
  std::string text(static_cast<size_t>(std::snprintf(nullptr, 0, format.c_str(), magnitude)), '\0');
  std::snprintf(text.data(), text.size() + 1, format.c_str(), magnitude);
  return text;
}

void insert_commas(std::string& digits) {
  size_t whole = digits.find_first_not_of("0123456789");
  if (whole == std::string::npos) whole = digits.size();
  for (size_t at = whole; at > 3; at -= 3) digits.insert(at - 3, ",");
}

void append_padded(Runtime& runtime, const Field& field, const std::string& sign, const std::string& body,
                   char default_align, std::string& out) {
  const int64_t missing = field.width - num_code_points(sign) - num_code_points(body);
  runtime.allocate(body.size() + static_cast<size_t>(std::max<int64_t>(missing, 0)));
  const char align = field.align == '\0' ? default_align : field.align;
  const int64_t left = missing <= 0 || align == '<' || align == '=' ? 0
                       : align == '^'                               ? missing / 2
                                                                    : missing;
  const auto fill = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) out += field.fill;
  };
  fill(left);
  out += sign;
  if (align == '=') fill(missing);
  out += body;
  if (align != '=') fill(missing - left);
}

void append_number(Runtime& runtime, const Field& field, bool is_negative, std::string digits,
                   std::string& out) {
  if (field.has_commas) insert_commas(digits);
  const std::string sign = is_negative ? "-" : field.sign == '-' ? "" : std::string(1, field.sign);
  append_padded(runtime, field, sign, digits, '>', out);
}

// `as_text` is for '%': its %s takes anything.
void append_field(Runtime& runtime, const Field& field, const Value& value, std::string& out) {
  if (field.width > kMaxWidth || field.precision.value_or(0) > kMaxPrecision)
    runtime.fail_limit("characters of width", static_cast<size_t>(kMaxWidth));
  const bool wants_integer =
      std::string_view("dxXob").find(field.type) != std::string_view::npos && field.type != 0;
  const bool wants_float =
      std::string_view("fFeEgG").find(field.type) != std::string_view::npos && field.type != 0;
  if (wants_integer || (field.type == 0 && value.is<int64_t>())) {
    if (!value.is_integral() || field.precision)
      runtime.fail(fmt::format("the format '{}' needs an integer, not '{}'", field.type, type_name(value)));
    const int64_t number = value.integer();
    const uint64_t magnitude = number < 0 ? -static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    std::string digits = digits_of(magnitude, field.type);
    if (field.has_prefix && field.type != 'd') digits = fmt::format("0{}{}", field.type, digits);
    return append_number(runtime, field, number < 0, std::move(digits), out);
  }
  if (wants_float) {
    if (!value.is_number())
      runtime.fail(fmt::format("the format '{}' needs a number, not '{}'", field.type, type_name(value)));
    const double number = value.number();
    return append_number(runtime, field, std::signbit(number) && !std::isnan(number),
                         float_digits(std::abs(number), field), out);
  }
  if (field.type != 0 && field.type != 's')
    runtime.fail_unsupported(fmt::format("the format '{}'", field.type));
  if (value.is<double>() && field.type == 0) {
    if (field.precision) runtime.fail_unsupported("a precision without a type");
    const double number = value.as<double>();
    return append_number(runtime, field, std::signbit(number) && !std::isnan(number),
                         float_repr(std::abs(number)), out);
  }
  std::string text = str(runtime, value);
  if (field.precision) {
    std::u32string codes = to_code_points(text);
    codes.resize(std::min(codes.size(), static_cast<size_t>(*field.precision)));
    text = to_utf8(codes);
  }
  append_padded(runtime, field, "", text, '<', out);
}

int64_t read_number(std::string_view text, size_t& pos) {
  int64_t number = 0;
  for (; pos < text.size() && text[pos] >= '0' && text[pos] <= '9'; ++pos)
    number = std::min(number * 10 + (text[pos] - '0'), kMaxWidth + 1);
  return number;
}

char peek(std::string_view text, size_t pos) { return pos < text.size() ? text[pos] : '\0'; }

// [[fill]align][sign][#][0][width][,][.precision][type]
Field parse_spec(Runtime& runtime, std::string_view spec) {
  Field field;
  size_t pos = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  size_t behind_fill = 0;
  if (!spec.empty()) next_code_point(spec, behind_fill);
  if (is_align(peek(spec, behind_fill)) && behind_fill > 0) {
    field.fill = spec.substr(0, behind_fill);
    field.align = spec[behind_fill];
    pos = behind_fill + 1;
  } else if (is_align(peek(spec, 0))) {
    field.align = spec[pos++];
  }
  if (const char c = peek(spec, pos); c == '+' || c == '-' || c == ' ') field.sign = spec[pos++];
  if (peek(spec, pos) == '#') field.has_prefix = ++pos;
  if (peek(spec, pos) == '0') {
    if (field.align == '\0') {
      field.fill = "0";
      field.align = '=';
    }
    ++pos;
  }
  field.width = read_number(spec, pos);
  if (peek(spec, pos) == ',') field.has_commas = ++pos;
  if (peek(spec, pos) == '.') field.precision = read_number(spec, ++pos);
  if (pos < spec.size()) field.type = spec[pos++];
  if (pos < spec.size()) runtime.fail_unsupported(fmt::format("the format '{}'", spec));
  return field;
}

}  // namespace

Value format_percent(Runtime& runtime, std::string_view format, const Value& values) {
  std::string out;
  size_t next = 0, num_used = 0;
  const bool is_tuple = values.is_list() && values.list().flavour == List::Flavour::kTuple;
  const auto take = [&]() -> const Value& {
    ++num_used;
    if (!is_tuple) {
      if (next++ > 0) runtime.fail("'%' needs more values than it was given");
      return values;
    }
    if (next >= values.list().items.size()) runtime.fail("'%' needs more values than it was given");
    return values.list().items[next++];
  };
  // Python asks whether the value could be looked up in by key, which lists can by its rules.
  const bool is_mapping = values.is_dict() || values.is_list() || values.is_undefined();
  bool uses_keys = false;
  for (size_t pos = 0; pos < format.size();) {
    const size_t mark = std::min(format.find('%', pos), format.size());
    out += format.substr(pos, mark - pos);
    if (mark == format.size()) break;
    pos = mark + 1;
    const Value* value = nullptr;
    if (peek(format, pos) == '(') {
      const size_t close = format.find(')', pos);
      if (close == std::string_view::npos || !values.is_dict()) runtime.fail("'%(key)' needs a dict");
      const std::string_view key = format.substr(pos + 1, close - pos - 1);
      value = find(runtime, values.dict(), key);
      if (value == nullptr) runtime.fail(fmt::format("'%' has no value for the key '{}'", key));
      uses_keys = true;
      pos = close + 1;
    }
    Field field;
    field.align = '>';
    bool has_zeros = false;
    for (char c = peek(format, pos); c == '-' || c == '+' || c == ' ' || c == '#' || c == '0';
         c = peek(format, ++pos)) {
      if (c == '-') field.align = '<';
      if (c == '+' || (c == ' ' && field.sign == '-')) field.sign = c;
      if (c == '#') field.has_prefix = true;
      if (c == '0') has_zeros = true;
    }
    if (peek(format, pos) == '*') runtime.fail_unsupported("'*' as a width");
    field.width = read_number(format, pos);
    if (peek(format, pos) == '.') field.precision = read_number(format, ++pos);
    field.type = peek(format, pos++);
    if (field.type == '%') {
      out += '%';
      continue;
    }
    const Value& argument = value != nullptr ? *value : take();
    if (field.type == 'i' || field.type == 'u') field.type = 'd';
    if (has_zeros && field.align == '>' && field.type != 's' && field.type != 'r') {
      field.fill = "0";
      field.align = '=';
    }
    if (field.type == 'r') {
      field.type = 's';
      std::string text;
      append_repr(runtime, argument, text);
      append_field(runtime, field, runtime.text(std::move(text)), out);
    } else if (field.type == 'd' && argument.is<double>()) {
      if (!(std::abs(argument.as<double>()) < 9e18)) runtime.fail("'%d' needs a number of at most 64 bits");
      append_field(runtime, field, static_cast<int64_t>(argument.as<double>()), out);
    } else {
      if (field.type == 0 || std::string_view("sdxXofFeEgG").find(field.type) == std::string_view::npos)
        runtime.fail_unsupported(
            fmt::format("the format '%{}'", std::string_view(&field.type, field.type != 0)));
      append_field(runtime, field, argument, out);
    }
  }
  if (is_tuple ? next < values.list().items.size() : num_used == 0 && !uses_keys && !is_mapping)
    runtime.fail("'%' was given more values than it needs");
  return runtime.text(std::move(out));
}

Value format_braces(Runtime& runtime, std::string_view format, const Arguments& arguments) {
  std::string out;
  size_t next = 0;
  for (size_t pos = 0; pos < format.size();) {
    const char c = format[pos++];
    if (c != '{' && c != '}') {
      out += c;
      continue;
    }
    if (peek(format, pos) == c) {
      out += c;
      ++pos;
      continue;
    }
    const size_t close = format.find_first_of("{}", pos);
    if (c == '}' || close == std::string_view::npos) runtime.fail("format(): a brace without its pair");
    if (format[close] == '{') runtime.fail_unsupported("a format within a format");
    std::string_view field = format.substr(pos, close - pos);
    pos = close + 1;
    std::string_view spec;
    if (const size_t colon = field.find(':'); colon != std::string_view::npos) {
      spec = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    char conversion = '\0';
    if (const size_t mark = field.find('!'); mark != std::string_view::npos) {
      if (field.size() != mark + 2 || (field[mark + 1] != 'r' && field[mark + 1] != 's'))
        runtime.fail_unsupported(fmt::format("the conversion '{}'", field.substr(mark)));
      conversion = field[mark + 1];
      field = field.substr(0, mark);
    }
    if (field.find_first_of(".[") != std::string_view::npos)
      runtime.fail_unsupported(fmt::format("the look-up '{}' in a format", field));
    const Value* value = nullptr;
    if (field.empty() || (field[0] >= '0' && field[0] <= '9')) {
      size_t at = 0;
      const size_t index = field.empty() ? next++ : static_cast<size_t>(read_number(field, at));
      if (index < arguments.positional.size()) value = &arguments.positional[index];
    } else {
      for (const auto& [name, keyword] : arguments.keywords)
        if (name == field) value = &keyword;
    }
    if (value == nullptr) runtime.fail(fmt::format("format(): no value for the field '{}'", field));
    if (conversion != '\0') {
      std::string text;
      if (conversion == 'r')
        append_repr(runtime, *value, text);
      else
        append_str(runtime, *value, text);
      append_field(runtime, parse_spec(runtime, spec), runtime.text(std::move(text)), out);
    } else if (spec.empty()) {
      append_str(runtime, *value, out);
    } else {
      if (!value->is_number() && !value->is_text())
        runtime.fail(fmt::format("format(): '{}' takes no format", type_name(*value)));
      append_field(runtime, parse_spec(runtime, spec), *value, out);
    }
    runtime.step();
  }
  return runtime.text(std::move(out));
}

}  // namespace sinter::text::jinja
