// The filters of the language: `x | name(arguments)`. Those that Python makes lazily give an iterator, which
// is empty after it was used once, as there.
#include "text/jinja/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "text/jinja/json_text.h"
#include "text/jinja/methods.h"
#include "text/jinja/number_filters.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/runtime.h"
#include "text/jinja/sequence_filters.h"

namespace sinter::text::jinja {
namespace {

#define INPUT Runtime &rt, const Value &value, const Arguments &arguments

Value safe_text(Runtime& rt, std::string text) {
  rt.allocate(text.size());
  return Text{std::make_shared<const std::string>(std::move(text)), true};
}

Value mapped_text(INPUT, std::string (*map)(std::string_view)) {
  arguments.bind(rt, "a filter of case", {}, 0);
  const std::string text = str(rt, value);
  rt.allocate(text.size());
  return rt.text(map(text));
}

// Words begin behind white space and -({[<; each gets an upper first character.
Value title(INPUT) {
  arguments.bind(rt, "title", {}, 0);
  const std::string text = str(rt, value);
  const auto is_break = [](char32_t code) {
    return is_space(code) ||
           (code < 0x80 && std::string_view("-({[<").find(static_cast<char>(code)) != std::string_view::npos);
  };
  std::string out;
  for (size_t pos = 0; pos < text.size();) {
    const size_t start = pos;
    size_t first_end = pos;
    const bool wanted = is_break(next_code_point(text, first_end));
    size_t end = first_end;
    while (end < text.size()) {
      size_t next = end;
      if (is_break(next_code_point(text, next)) != wanted) break;
      end = next;
    }
    out += upper(std::string_view(text).substr(start, first_end - start));
    out += lower(std::string_view(text).substr(first_end, end - first_end));
    pos = end;
  }
  return rt.text(std::move(out));
}

Value trim(INPUT) {
  const auto bound = arguments.bind(rt, "trim", {"chars"}, 0);
  const std::string text = str(rt, value);
  return rt.text(std::string(strip(rt, text, bound[0], true, true)));
}

Value replace_filter(INPUT) {
  const auto bound = arguments.bind(rt, "replace", {"old", "new", "count"}, 2);
  int64_t count = -1;
  if (bound[2] && !bound[2]->is_none()) {
    if (!bound[2]->is_integral()) rt.fail("replace: the count must be an integer");
    count = bound[2]->integer();
  }
  return replace(rt, str(rt, value), str(rt, *bound[0]), str(rt, *bound[1]), count);
}

Value default_filter(INPUT) {
  const auto bound = arguments.bind(rt, "default", {"default_value", "boolean"}, 0);
  const bool counts_false = bound[1] && is_true(rt, *bound[1]);
  if (!value.is_undefined() && !(counts_false && !is_true(rt, value))) return value;
  return bound[0] ? *bound[0] : rt.text("");
}

Value to_json_filter(INPUT) {
  const auto bound = arguments.bind(rt, "tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0);
  JsonStyle style;
  style.is_ascii = bound[0] && is_true(rt, *bound[0]);
  style.has_sorted_keys = bound[3] && is_true(rt, *bound[3]);
  if (bound[1] && !bound[1]->is_none()) {
    if (bound[1]->is_text()) {
      style.indent = bound[1]->text();
    } else {
      if (!bound[1]->is_integral()) rt.fail("tojson: the indent must be an integer or a string");
      const int64_t width = std::max<int64_t>(bound[1]->integer(), 0);
      if (width > 1000) rt.fail_limit("characters of indent", 1000);
      style.indent = std::string(static_cast<size_t>(width), ' ');
    }
    style.item_separator = ",";
  }
  if (bound[2] && !bound[2]->is_none()) {
    if (!bound[2]->is_list() || bound[2]->list().items.size() != 2 || !bound[2]->list().items[0].is_text() ||
        !bound[2]->list().items[1].is_text())
      rt.fail("tojson: the separators must be two strings");
    style.item_separator = bound[2]->list().items[0].text();
    style.key_separator = bound[2]->list().items[1].text();
  }
  return rt.text(to_json(rt, value, style));
}

Value escape(INPUT) {
  arguments.bind(rt, "escape", {}, 0);
  if (value.is_safe_text()) return value;
  const std::string text = str(rt, value);
  rt.allocate(text.size() * 5);
  return safe_text(rt, escape_html(text));
}

Value indent(INPUT) {
  const auto bound = arguments.bind(rt, "indent", {"width", "first", "blank"}, 0);
  if (value.is_undefined()) rt.fail_undefined(value);
  if (!value.is_text()) rt.fail(fmt::format("indent: expected a string, found '{}'", type_name(value)));
  std::string margin(4, ' ');
  if (bound[0] && bound[0]->is_text()) {
    margin = bound[0]->text();
  } else if (bound[0]) {
    if (!bound[0]->is_integral()) rt.fail("indent: the width must be an integer or a string");
    const int64_t width = std::max<int64_t>(bound[0]->integer(), 0);
    if (width > 1000) rt.fail_limit("characters of indent", 1000);
    margin.assign(static_cast<size_t>(width), ' ');
  }
  const bool with_first = bound[1] && is_true(rt, *bound[1]);
  const bool with_blank = bound[2] && is_true(rt, *bound[2]);
  const std::string text = value.text() + "\n";
  std::string out;
  bool is_first = true;
  for (size_t begin = 0, pos = 0; pos < text.size();) {
    const size_t end = pos;
    const char32_t code = next_code_point(text, pos);
    if (!is_line_end(code)) continue;
    if (code == '\r' && pos < text.size() && text[pos] == '\n') ++pos;
    if (!is_first) out += '\n';
    if (is_first ? with_first : with_blank || end > begin) {
      rt.allocate(margin.size());
      out += margin;
    }
    out += std::string_view(text).substr(begin, end - begin);
    is_first = false;
    begin = pos;
  }
  return rt.text(std::move(out));
}

Value word_count(INPUT) {
  arguments.bind(rt, "wordcount", {}, 0);
  const std::string text = str(rt, value);
  int64_t count = 0;
  bool is_inside = false;
  for (size_t pos = 0; pos < text.size();) {
    const bool is_part = is_word(next_code_point(text, pos));
    count += is_part && !is_inside;
    is_inside = is_part;
  }
  return count;
}

Value format_filter(INPUT) {
  const std::string format = str(rt, value);
  if (!arguments.keywords.empty()) {
    if (!arguments.positional.empty()) rt.fail("format: positional and named values together");
    std::vector<std::pair<Value, Value>> entries;
    for (const auto& [name, keyword] : arguments.keywords) entries.emplace_back(rt.text(name), keyword);
    return format_percent(rt, format, rt.dict(std::move(entries)));
  }
  return format_percent(rt, format, rt.list(arguments.positional, List::Flavour::kTuple));
}

Value length_filter(INPUT) {
  arguments.bind(rt, "length", {}, 0);
  const std::optional<int64_t> size = length(rt, value);
  if (!size) rt.fail(fmt::format("a '{}' has no length", type_name(value)));
  return *size;
}

constexpr Filter kFilters[] = {
    {"abs", abs_filter},
    {"attr",
     [](INPUT) {
       const auto bound = arguments.bind(rt, "attr", {"name"}, 1);
       // Keys do not count here.
       if (value.is_dict() && find_method(value, str(rt, *bound[0])) == nullptr)
         return Value::undefined("a 'dict' has no such attribute");
       return get_attribute(rt, value, str(rt, *bound[0]));
     }},
    {"batch", batch},
    {"capitalize", [](INPUT) { return mapped_text(rt, value, arguments, title_first); }},
    {"count", length_filter, true},
    {"d", default_filter, true},
    {"default", default_filter, true},
    {"dictsort", dict_sort},
    {"e", escape, true},
    {"escape", escape, true},
    {"first", first},
    {"float", float_filter},
    {"forceescape",
     [](INPUT) {
       arguments.bind(rt, "forceescape", {}, 0);
       return safe_text(rt, escape_html(str(rt, value)));
     },
     true},
    {"format", format_filter},
    {"indent", indent},
    {"int", int_filter},
    {"items", items},
    {"join", join_filter},
    {"last", last},
    {"length", length_filter, true},
    {"list", list_filter},
    {"lower", [](INPUT) { return mapped_text(rt, value, arguments, lower); }},
    {"map", map},
    {"max", [](INPUT) { return extreme(rt, value, arguments, true); }},
    {"min", [](INPUT) { return extreme(rt, value, arguments, false); }},
    {"reject", [](INPUT) { return select(rt, value, arguments, false, false); }},
    {"rejectattr", [](INPUT) { return select(rt, value, arguments, true, false); }},
    {"replace", replace_filter},
    {"reverse", reverse},
    {"round", round_filter},
    {"safe",
     [](INPUT) {
       arguments.bind(rt, "safe", {}, 0);
       return value.is_safe_text() ? value : safe_text(rt, str(rt, value));
     },
     true},
    {"select", [](INPUT) { return select(rt, value, arguments, false, true); }},
    {"selectattr", [](INPUT) { return select(rt, value, arguments, true, true); }},
    {"slice", slice_filter},
    {"sort", sort},
    {"string",
     [](INPUT) {
       arguments.bind(rt, "string", {}, 0);
       return value.is_text() ? value : rt.text(str(rt, value));
     },
     true},
    {"sum", sum},
    {"title", title},
    {"tojson", to_json_filter, true},
    {"trim", trim},
    {"unique", unique},
    {"upper", [](INPUT) { return mapped_text(rt, value, arguments, upper); }},
    {"wordcount", word_count},
};

#undef INPUT

}  // namespace

const Filter* find_filter(std::string_view name) {
  const auto* filter = std::find_if(std::begin(kFilters), std::end(kFilters),
                                    [&](const Filter& candidate) { return candidate.name == name; });
  return filter == std::end(kFilters) ? nullptr : filter;
}

Value apply(Runtime& runtime, const Filter& filter, const Value& input, const Arguments& arguments) {
  if (input.is_safe_text() && !filter.takes_safe)
    runtime.fail_unsupported(fmt::format("the filter '{}' on a string marked safe", filter.name));
  runtime.step();
  if (input.is_text()) runtime.scan(input.text().size());
  return filter.apply(runtime, input, arguments);
}

}  // namespace sinter::text::jinja
