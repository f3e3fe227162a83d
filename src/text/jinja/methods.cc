#include "text/jinja/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/runtime.h"

namespace sinter::text::jinja {
namespace {

const std::string& text_argument(Runtime& runtime, std::string_view method, const Value& value) {
  if (value.is_undefined()) runtime.fail_undefined(value);
  if (!value.is_text()) runtime.fail(fmt::format("{}() needs a string, not '{}'", method, type_name(value)));
  return value.text();
}

int64_t int_argument(Runtime& runtime, std::string_view method, const std::optional<Value>& value,
                     int64_t otherwise) {
  if (!value) return otherwise;
  if (value->is_undefined()) runtime.fail_undefined(*value);
  if (!value->is_integral())
    runtime.fail(fmt::format("{}() needs an integer, not '{}'", method, type_name(*value)));
  return value->integer();
}

bool is_absent(const std::optional<Value>& value) { return !value || value->is_none(); }

// Pieces between separators; at most `max_splits` cuts, from the left or from the right.
std::vector<std::string_view> split_at(std::string_view text, std::string_view separator, int64_t max_splits,
                                       bool from_right) {
  std::vector<std::string_view> pieces;
  while (max_splits != 0) {
    const size_t cut = from_right ? text.rfind(separator) : text.find(separator);
    if (cut == std::string_view::npos) break;
    if (from_right) {
      pieces.push_back(text.substr(cut + separator.size()));
      text = text.substr(0, cut);
    } else {
      pieces.push_back(text.substr(0, cut));
      text = text.substr(cut + separator.size());
    }
    --max_splits;
  }
  pieces.push_back(text);
  if (from_right) std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

std::vector<std::string_view> split_at_space(std::string_view text, int64_t max_splits, bool from_right) {
  std::vector<std::string_view> pieces;
  text = from_right ? strip_right(text) : strip_left(text);
  while (!text.empty()) {
    if (max_splits == 0) {
      pieces.push_back(text);
      break;
    }
    size_t begin = 0, end = text.size();
    if (from_right) {
      for (size_t pos = 0; pos < text.size();)
        if (is_space(next_code_point(text, pos))) begin = pos;
    } else {
      for (size_t pos = 0; pos < text.size();) {
        const size_t start = pos;
        if (is_space(next_code_point(text, pos))) {
          end = start;
          break;
        }
      }
    }
    pieces.push_back(text.substr(begin, end - begin));
    text = from_right ? strip_right(text.substr(0, begin)) : strip_left(text.substr(end));
    --max_splits;
  }
  if (from_right) std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

Value texts(Runtime& runtime, const std::vector<std::string_view>& pieces) {
  std::vector<Value> items;
  items.reserve(pieces.size());
  runtime.allocate(pieces.size() * (sizeof(Value) + sizeof(std::string)));
  for (const std::string_view piece : pieces) items.push_back(runtime.text(std::string(piece)));
  return runtime.list(std::move(items));
}

Value split(Runtime& runtime, const Value& self, const Arguments& arguments, bool from_right) {
  const std::string_view name = from_right ? "rsplit" : "split";
  const auto bound = arguments.bind(runtime, name, {"sep", "maxsplit"}, 0);
  const int64_t max_splits = int_argument(runtime, name, bound[1], -1);
  if (is_absent(bound[0])) {
    // From the right each piece looks at all that is left.
    if (from_right) runtime.step(self.text().size());
    return texts(runtime, split_at_space(self.text(), max_splits, from_right));
  }
  const std::string& separator = text_argument(runtime, name, *bound[0]);
  if (separator.empty()) runtime.fail(fmt::format("{}() needs a separator that is not empty", name));
  return texts(runtime, split_at(self.text(), separator, max_splits, from_right));
}

Value partition(Runtime& runtime, const Value& self, const Arguments& arguments, bool from_right) {
  const std::string_view name = from_right ? "rpartition" : "partition";
  const auto bound = arguments.bind(runtime, name, {"/sep"}, 1);
  const std::string& separator = text_argument(runtime, name, *bound[0]);
  if (separator.empty()) runtime.fail(fmt::format("{}() needs a separator that is not empty", name));
  const std::string& text = self.text();
  const size_t cut = from_right ? text.rfind(separator) : text.find(separator);
  std::vector<Value> parts;
  if (cut == std::string::npos) {
    parts = {runtime.text(""), runtime.text("")};
    parts.insert(from_right ? parts.end() : parts.begin(), self);
  } else {
    parts = {runtime.text(text.substr(0, cut)), *bound[0], runtime.text(text.substr(cut + separator.size()))};
  }
  return runtime.list(std::move(parts), List::Flavour::kTuple);
}

Value strip_method(Runtime& runtime, const Value& self, const Arguments& arguments, std::string_view name,
                   bool left, bool right) {
  const auto bound = arguments.bind(runtime, name, {"/chars"}, 0);
  return runtime.text(std::string(strip(runtime, self.text(), bound[0], left, right)));
}

// The part of `text` that optional start and end arguments select, in bytes; empty when start is behind the
// end.
std::optional<std::string_view> window(Runtime& runtime, std::string_view method, std::string_view text,
                                       const std::optional<Value>& start, const std::optional<Value>& end) {
  if (is_absent(start) && is_absent(end)) return text;
  const int64_t size = num_code_points(text);
  const auto index = [&](const std::optional<Value>& value, int64_t otherwise) {
    int64_t at = is_absent(value) ? otherwise : int_argument(runtime, method, value, otherwise);
    if (at < 0) at = std::max<int64_t>(at + size, 0);
    return at;
  };
  const int64_t first = index(start, 0);
  const int64_t last = std::min(index(end, size), size);
  if (first > last) return std::nullopt;
  size_t begin_byte = 0, end_byte = 0;
  for (int64_t i = 0; i < last; ++i) {
    if (i == first) begin_byte = end_byte;
    next_code_point(text, end_byte);
  }
  if (first == last) begin_byte = end_byte;
  return text.substr(begin_byte, end_byte - begin_byte);
}

Value has_affix(Runtime& runtime, const Value& self, const Arguments& arguments, bool at_start) {
  const std::string_view name = at_start ? "startswith" : "endswith";
  const auto bound = arguments.bind(runtime, name, {"/prefix", "/start", "/end"}, 1);
  const auto text = window(runtime, name, self.text(), bound[1], bound[2]);
  const auto matches = [&](const Value& affix) {
    const std::string& wanted = text_argument(runtime, name, affix);
    return text && (at_start ? text->starts_with(wanted) : text->ends_with(wanted));
  };
  if (bound[0]->is_list() && bound[0]->list().flavour == List::Flavour::kTuple) {
    const auto& affixes = bound[0]->list().items;
    return std::any_of(affixes.begin(), affixes.end(), matches);
  }
  return matches(*bound[0]);
}

Value find_text(Runtime& runtime, const Value& self, const Arguments& arguments, std::string_view name,
                bool from_right, bool must_exist) {
  const auto bound = arguments.bind(runtime, name, {"/sub", "/start", "/end"}, 1);
  const std::string& wanted = text_argument(runtime, name, *bound[0]);
  const std::string_view text = self.text();
  const auto part = window(runtime, name, text, bound[1], bound[2]);
  const size_t at = !part ? std::string_view::npos : from_right ? part->rfind(wanted) : part->find(wanted);
  if (at != std::string_view::npos)
    return num_code_points(text.substr(0, static_cast<size_t>(part->data() - text.data()) + at));
  if (must_exist) runtime.fail(fmt::format("{}(): no such part in the string", name));
  return int64_t{-1};
}

Value count_text(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.bind(runtime, "count", {"/sub", "/start", "/end"}, 1);
  const std::string& wanted = text_argument(runtime, "count", *bound[0]);
  const auto part = window(runtime, "count", self.text(), bound[1], bound[2]);
  if (!part) return int64_t{0};
  if (wanted.empty()) return num_code_points(*part) + 1;
  int64_t count = 0;
  for (size_t at = 0; (at = part->find(wanted, at)) != std::string_view::npos; at += wanted.size()) ++count;
  return count;
}

Value split_lines(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.bind(runtime, "splitlines", {"keepends"}, 0);
  const bool keeps = bound[0] && is_true(runtime, *bound[0]);
  const std::string_view text = self.text();
  std::vector<std::string_view> lines;
  for (size_t begin = 0, pos = 0; pos < text.size();) {
    const size_t end = pos;
    const char32_t code = next_code_point(text, pos);
    if (is_line_end(code)) {
      if (code == '\r' && pos < text.size() && text[pos] == '\n') ++pos;
      lines.push_back(text.substr(begin, (keeps ? pos : end) - begin));
      begin = pos;
    } else if (pos == text.size()) {
      lines.push_back(text.substr(begin));
    }
  }
  return texts(runtime, lines);
}

Value pad(Runtime& runtime, const Value& self, const Arguments& arguments, std::string_view name) {
  const auto bound = arguments.bind(runtime, name, {"/width", "/fillchar"}, 1);
  const int64_t width = int_argument(runtime, name, bound[0], 0);
  const std::string fill = bound[1] ? text_argument(runtime, name, *bound[1]) : " ";
  if (num_code_points(fill) != 1) runtime.fail(fmt::format("{}() needs one character to fill with", name));
  const int64_t missing = width - num_code_points(self.text());
  if (missing <= 0) return self;
  runtime.allocate(static_cast<size_t>(std::min(missing, INT64_MAX / 4)) * fill.size());
  const int64_t left = name == "ljust" ? 0 : name == "rjust" ? missing : missing / 2 + (missing & width & 1);
  std::string text;
  for (int64_t i = 0; i < left; ++i) text += fill;
  text += self.text();
  for (int64_t i = left; i < missing; ++i) text += fill;
  return runtime.text(std::move(text));
}

Value zero_fill(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto bound = arguments.bind(runtime, "zfill", {"/width"}, 1);
  const int64_t missing = int_argument(runtime, "zfill", bound[0], 0) - num_code_points(self.text());
  if (missing <= 0) return self;
  runtime.allocate(static_cast<size_t>(missing));
  std::string text = self.text();
  const size_t behind_sign = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
  text.insert(behind_sign, static_cast<size_t>(missing), '0');
  return runtime.text(std::move(text));
}

Value remove_affix(Runtime& runtime, const Value& self, const Arguments& arguments, bool at_start) {
  const std::string_view name = at_start ? "removeprefix" : "removesuffix";
  const std::string& affix = text_argument(runtime, name, *arguments.bind(runtime, name, {"/prefix"}, 1)[0]);
  const std::string_view text = self.text();
  if (at_start ? !text.starts_with(affix) : !text.ends_with(affix)) return self;
  return runtime.text(std::string(text.substr(at_start ? affix.size() : 0, text.size() - affix.size())));
}

// isalpha and its like: every character is one, and there is one.
Value all_characters(Runtime& runtime, const Value& self, const Arguments& arguments,
                     bool (*holds)(char32_t)) {
  arguments.bind(runtime, "is...", {}, 0);
  const std::string& text = self.text();
  for (size_t pos = 0; pos < text.size();)
    if (!holds(next_code_point(text, pos))) return false;
  return !text.empty();
}

// isupper, islower: no letter of the other case, and at least one of this.
Value all_cased(Runtime& runtime, const Value& self, const Arguments& arguments, bool wants_upper) {
  arguments.bind(runtime, "is...", {}, 0);
  const std::string& text = self.text();
  bool has_one = false;
  for (size_t pos = 0; pos < text.size();) {
    const char32_t code = next_code_point(text, pos);
    if (wants_upper ? is_lower(code) : is_upper(code)) return false;
    has_one |= wants_upper ? is_upper(code) : is_lower(code);
  }
  return has_one;
}

Value mapped(Runtime& runtime, const Value& self, const Arguments& arguments,
             std::string (*map)(std::string_view)) {
  arguments.bind(runtime, "a method of case", {}, 0);
  runtime.allocate(self.text().size());
  return runtime.text(map(self.text()));
}

#define SELF Runtime &rt, const Value &self, const Arguments &arguments

constexpr Method kTextMethods[] = {
    {"capitalize", [](SELF) { return mapped(rt, self, arguments, title_first); }},
    {"center", [](SELF) { return pad(rt, self, arguments, "center"); }},
    {"count", count_text},
    {"endswith", [](SELF) { return has_affix(rt, self, arguments, false); }},
    {"find", [](SELF) { return find_text(rt, self, arguments, "find", false, false); }},
    {"format", [](SELF) { return format_braces(rt, self.text(), arguments); }},
    {"index", [](SELF) { return find_text(rt, self, arguments, "index", false, true); }},
    {"isalnum",
     [](SELF) {
       return all_characters(rt, self, arguments,
                             [](char32_t code) { return is_alpha(code) || is_decimal(code); });
     }},
    {"isalpha", [](SELF) { return all_characters(rt, self, arguments, is_alpha); }},
    {"isascii",
     [](SELF) {
       arguments.bind(rt, "isascii", {}, 0);
       return Value(std::all_of(self.text().begin(), self.text().end(), [](char c) { return c >= 0; }));
     }},
    {"isdecimal", [](SELF) { return all_characters(rt, self, arguments, is_decimal); }},
    {"isdigit", [](SELF) { return all_characters(rt, self, arguments, is_decimal); }},
    {"islower", [](SELF) { return all_cased(rt, self, arguments, false); }},
    {"isspace", [](SELF) { return all_characters(rt, self, arguments, is_space); }},
    {"isupper", [](SELF) { return all_cased(rt, self, arguments, true); }},
    {"join",
     [](SELF) {
       const auto bound = arguments.bind(rt, "join", {"/iterable"}, 1);
       const ListPtr items = iterate(rt, *bound[0]);
       for (const Value& item : items->items) text_argument(rt, "join", item);
       return join(rt, self.text(), items->items);
     }},
    {"ljust", [](SELF) { return pad(rt, self, arguments, "ljust"); }},
    {"lower", [](SELF) { return mapped(rt, self, arguments, lower); }},
    {"lstrip", [](SELF) { return strip_method(rt, self, arguments, "lstrip", true, false); }},
    {"partition", [](SELF) { return partition(rt, self, arguments, false); }},
    {"removeprefix", [](SELF) { return remove_affix(rt, self, arguments, true); }},
    {"removesuffix", [](SELF) { return remove_affix(rt, self, arguments, false); }},
    {"replace",
     [](SELF) {
       const auto bound = arguments.bind(rt, "replace", {"/old", "/new", "/count"}, 2);
       return replace(rt, self.text(), text_argument(rt, "replace", *bound[0]),
                      text_argument(rt, "replace", *bound[1]), int_argument(rt, "replace", bound[2], -1));
     }},
    {"rfind", [](SELF) { return find_text(rt, self, arguments, "rfind", true, false); }},
    {"rindex", [](SELF) { return find_text(rt, self, arguments, "rindex", true, true); }},
    {"rjust", [](SELF) { return pad(rt, self, arguments, "rjust"); }},
    {"rpartition", [](SELF) { return partition(rt, self, arguments, true); }},
    {"rsplit", [](SELF) { return split(rt, self, arguments, true); }},
    {"rstrip", [](SELF) { return strip_method(rt, self, arguments, "rstrip", false, true); }},
    {"split", [](SELF) { return split(rt, self, arguments, false); }},
    {"splitlines", split_lines},
    {"startswith", [](SELF) { return has_affix(rt, self, arguments, true); }},
    {"strip", [](SELF) { return strip_method(rt, self, arguments, "strip", true, true); }},
    {"title", [](SELF) { return mapped(rt, self, arguments, title_words); }},
    {"upper", [](SELF) { return mapped(rt, self, arguments, upper); }},
    {"zfill", zero_fill},
    // Of Python, not of this language.
    {"casefold", nullptr},
    {"encode", nullptr},
    {"expandtabs", nullptr},
    {"format_map", nullptr},
    {"isidentifier", nullptr},
    {"isnumeric", nullptr},
    {"isprintable", nullptr},
    {"istitle", nullptr},
    {"maketrans", nullptr},
    {"swapcase", nullptr},
    {"translate", nullptr},
};

std::vector<Value> columns(const Dict& dict, bool with_keys, bool with_values, Runtime& runtime) {
  std::vector<Value> items;
  items.reserve(dict.entries.size());
  for (const auto& [key, value] : dict.entries) {
    if (with_keys && with_values)
      items.push_back(runtime.list({key, value}, List::Flavour::kTuple));
    else
      items.push_back(with_keys ? key : value);
  }
  return items;
}

constexpr Method kDictMethods[] = {
    {"copy",
     [](SELF) {
       arguments.bind(rt, "copy", {}, 0);
       return self;
     }},
    {"get",
     [](SELF) {
       const auto bound = arguments.bind(rt, "get", {"/key", "/default"}, 1);
       if (!is_hashable(*bound[0])) rt.fail(fmt::format("'{}' cannot be a key", type_name(*bound[0])));
       const Value* value = find(rt, self.dict(), *bound[0]);
       return value != nullptr ? *value : bound[1].value_or(None{});
     }},
    {"items",
     [](SELF) {
       arguments.bind(rt, "items", {}, 0);
       return rt.list(columns(self.dict(), true, true, rt), List::Flavour::kItems);
     }},
    {"keys",
     [](SELF) {
       arguments.bind(rt, "keys", {}, 0);
       return rt.list(columns(self.dict(), true, false, rt), List::Flavour::kKeys);
     }},
    {"values",
     [](SELF) {
       arguments.bind(rt, "values", {}, 0);
       return rt.list(columns(self.dict(), false, true, rt), List::Flavour::kValues);
     }},
    {"fromkeys", nullptr},
};

constexpr Method kListMethods[] = {
    {"count",
     [](SELF) {
       const auto bound = arguments.bind(rt, "count", {"/value"}, 1);
       int64_t count = 0;
       for (const Value& item : self.list().items) count += equals(rt, item, *bound[0]);
       return Value(count);
     }},
    {"index",
     [](SELF) {
       const auto bound = arguments.bind(rt, "index", {"/value"}, 1);
       const auto& items = self.list().items;
       for (size_t i = 0; i < items.size(); ++i)
         if (equals(rt, items[i], *bound[0])) return Value(static_cast<int64_t>(i));
       rt.fail("index(): no such value in the list");
     }},
    {"copy",
     [](SELF) {
       arguments.bind(rt, "copy", {}, 0);
       return self;
     }},
};

#undef SELF

const Method* find_in(const auto& methods, std::string_view name) {
  const auto* method = std::find_if(std::begin(methods), std::end(methods),
                                    [&](const Method& candidate) { return candidate.name == name; });
  return method == std::end(methods) ? nullptr : method;
}

}  // namespace

const Method* find_method(const Value& self, std::string_view name) {
  if (self.is_text()) return find_in(kTextMethods, name);
  if (self.is_dict()) return find_in(kDictMethods, name);
  if (!self.is_list() || !self.list().is_indexable()) return nullptr;
  const Method* method = find_in(kListMethods, name);
  const bool is_list = self.list().flavour == List::Flavour::kList;
  return method != nullptr && name == "copy" && !is_list ? nullptr : method;
}

bool is_mutator(const Value& self, std::string_view name) {
  static constexpr std::array<std::string_view, 5> kOfDicts = {"clear", "pop", "popitem", "setdefault",
                                                               "update"};
  static constexpr std::array<std::string_view, 8> kOfLists = {"append", "clear",  "extend",  "insert",
                                                               "pop",    "remove", "reverse", "sort"};
  if (self.is_dict()) return std::find(kOfDicts.begin(), kOfDicts.end(), name) != kOfDicts.end();
  if (!self.is_list() || self.list().flavour != List::Flavour::kList) return false;
  return std::find(kOfLists.begin(), kOfLists.end(), name) != kOfLists.end();
}

Value replace(Runtime& runtime, std::string_view text, std::string_view from, std::string_view to,
              int64_t count) {
  runtime.scan(text.size());
  std::string out;
  size_t pos = 0;
  const auto put = [&](std::string_view piece) {
    runtime.check_room(out.size() + piece.size());
    out += piece;
  };
  if (from.empty()) {  // between all characters
    while (count != 0) {
      runtime.step();
      put(to);
      --count;
      if (pos >= text.size()) break;
      const size_t start = pos;
      next_code_point(text, pos);
      put(text.substr(start, pos - start));
    }
  } else {
    while (count != 0) {
      runtime.step();
      const size_t found = text.find(from, pos);
      if (found == std::string_view::npos) break;
      put(text.substr(pos, found - pos));
      put(to);
      pos = found + from.size();
      --count;
    }
  }
  put(text.substr(pos));
  return runtime.text(std::move(out));
}

std::string_view strip(Runtime& runtime, std::string_view text, const std::optional<Value>& characters,
                       bool left, bool right) {
  if (is_absent(characters)) {
    if (left) text = strip_left(text);
    return right ? strip_right(text) : text;
  }
  const std::u32string set = to_code_points(text_argument(runtime, "strip", *characters));
  const auto is_member = [&](char32_t code) {
    runtime.step();
    runtime.scan(set.size());
    return set.find(code) != std::u32string::npos;
  };
  while (left && !text.empty()) {
    size_t pos = 0;
    if (!is_member(next_code_point(text, pos))) break;
    text = text.substr(pos);
  }
  while (right && !text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    size_t pos = start;
    if (!is_member(next_code_point(text, pos))) break;
    text = text.substr(0, start);
  }
  return text;
}

Value join(Runtime& runtime, std::string_view separator, const std::vector<Value>& items) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += separator;
    append_str(runtime, items[i], out);
    runtime.check_room(out.size());
    runtime.step();
    runtime.scan(separator.size());
  }
  return runtime.text(std::move(out));
}

}  // namespace sinter::text::jinja
