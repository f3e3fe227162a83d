#include "text/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "text/jinja/loop.h"
#include "text/jinja/python_text.h"
#include "text/jinja/runtime.h"

namespace sinter::text::jinja {
namespace {

// An int and a float compare by value, not after rounding the int: 2**53 + 1 != float(2**53).
std::partial_ordering compare_numbers(const Value& left, const Value& right) {
  if (left.is_integral() && right.is_integral()) return left.integer() <=> right.integer();
  if (left.is<double>() && right.is<double>()) return left.as<double>() <=> right.as<double>();
  if (left.is<double>()) return 0 <=> compare_numbers(right, left);
  const double number = right.as<double>();
  constexpr double kTwo63 = 9223372036854775808.0;
  if (std::isnan(number)) return std::partial_ordering::unordered;
  if (number >= kTwo63) return std::partial_ordering::less;
  if (number < -kTwo63) return std::partial_ordering::greater;
  const double whole = std::floor(number);
  const auto order = left.integer() <=> static_cast<int64_t>(whole);
  if (order != 0) return order;
  return number > whole ? std::partial_ordering::less : std::partial_ordering::equivalent;
}

void append_items(Runtime& runtime, const std::vector<Value>& items, std::string_view open,
                  std::string_view close, std::string& out) {
  out += open;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    append_repr(runtime, items[i], out);
  }
  out += close;
}

void append_list(Runtime& runtime, const List& list, std::string& out) {
  switch (list.flavour) {
    case List::Flavour::kList: return append_items(runtime, list.items, "[", "]", out);
    case List::Flavour::kTuple:
      return append_items(runtime, list.items, "(", list.items.size() == 1 ? ",)" : ")", out);
    case List::Flavour::kKeys: return append_items(runtime, list.items, "dict_keys([", "])", out);
    case List::Flavour::kValues: return append_items(runtime, list.items, "dict_values([", "])", out);
    case List::Flavour::kItems: return append_items(runtime, list.items, "dict_items([", "])", out);
    case List::Flavour::kRange:
      out += fmt::format("range({}, {}", list.start, list.stop);
      if (list.step != 1) out += fmt::format(", {}", list.step);
      out += ')';
  }
}

void append_entries(Runtime& runtime, const auto& entries, const auto& append_key, std::string& out) {
  out += '{';
  bool is_first = true;
  for (const auto& [key, value] : entries) {
    if (!is_first) out += ", ";
    is_first = false;
    append_key(key);
    out += ": ";
    append_repr(runtime, value, out);
  }
  out += '}';
}

bool is_same_sequence(const List& left, const List& right) {
  return left.flavour == right.flavour && left.flavour != List::Flavour::kValues;
}

bool lists_equal(Runtime& runtime, const List& left, const List& right) {
  if (!is_same_sequence(left, right)) return false;
  if (left.items.size() != right.items.size()) return false;
  for (size_t i = 0; i < left.items.size(); ++i)
    if (!equals(runtime, left.items[i], right.items[i])) return false;
  return true;
}

bool dicts_equal(Runtime& runtime, const Dict& left, const Dict& right) {
  if (left.entries.size() != right.entries.size()) return false;
  for (const auto& [key, value] : left.entries) {
    const Value* other = find(runtime, right, key);
    if (other == nullptr || !equals(runtime, value, *other)) return false;
  }
  return true;
}

}  // namespace

Value Value::undefined(std::string reason) {
  Value value;
  value.storage_ = Undefined{std::make_shared<const std::string>(std::move(reason))};
  return value;
}

const Value* Namespace::find(std::string_view name) const {
  for (const auto& [key, value] : attributes)
    if (key == name) return &value;
  return nullptr;
}

void Namespace::set(std::string_view name, Value value) {
  for (auto& [key, old] : attributes)
    if (key == name) {
      old = std::move(value);
      return;
    }
  attributes.emplace_back(name, std::move(value));
}

std::vector<std::optional<Value>> Arguments::bind(Runtime& runtime, std::string_view callee,
                                                  std::initializer_list<std::string_view> names,
                                                  size_t num_required) const {
  std::vector<std::optional<Value>> bound(names.size());
  if (positional.size() > names.size())
    runtime.fail(
        fmt::format("{}() takes at most {} arguments, {} given", callee, names.size(), positional.size()));
  std::copy(positional.begin(), positional.end(), bound.begin());
  for (const auto& [keyword, value] : keywords) {
    const auto name = std::find(names.begin(), names.end(), keyword);
    if (name == names.end())
      runtime.fail(fmt::format("{}() takes no keyword argument '{}'", callee, keyword));
    auto& slot = bound[static_cast<size_t>(name - names.begin())];
    if (slot) runtime.fail(fmt::format("{}() got two values for argument '{}'", callee, keyword));
    slot = value;
  }
  for (size_t i = 0; i < num_required; ++i)
    if (!bound[i]) {
      std::string_view name = *(names.begin() + i);
      if (name.starts_with('/')) name.remove_prefix(1);
      runtime.fail(fmt::format("{}() needs the argument '{}'", callee, name));
    }
  return bound;
}

int depth(const Value& value) {
  if (value.is_list()) return value.list().depth;
  if (value.is_dict()) return value.dict().depth;
  if (value.is<std::shared_ptr<Iterator>>()) return value.as<std::shared_ptr<Iterator>>()->depth;
  if (value.is<std::shared_ptr<const Callable>>()) return value.as<std::shared_ptr<const Callable>>()->depth;
  if (value.is<std::shared_ptr<Loop>>()) return value.as<std::shared_ptr<Loop>>()->items()->depth + 1;
  return 0;
}

bool is_true(Runtime& runtime, const Value& value) {
  if (value.is_undefined() || value.is_none()) return false;
  if (value.is<double>()) return value.as<double>() != 0;
  if (value.is_integral()) return value.integer() != 0;
  if (value.is_text()) return !value.text().empty();
  const std::optional<int64_t> size = length(runtime, value);
  return !size || *size != 0;
}

bool equals(Runtime& runtime, const Value& left, const Value& right) {
  runtime.step();
  if (left.is_number() && right.is_number()) return compare_numbers(left, right) == 0;
  if (left.storage().index() != right.storage().index()) return false;
  if (left.is_text()) {
    if (left.text().size() != right.text().size()) return false;
    runtime.scan(left.text().size());
    return left.text() == right.text();
  }
  if (left.is_list()) return lists_equal(runtime, left.list(), right.list());
  if (left.is_dict()) return dicts_equal(runtime, left.dict(), right.dict());
  if (left.is<Namespace*>()) return left.as<Namespace*>() == right.as<Namespace*>();
  if (left.is<std::shared_ptr<Iterator>>())
    return left.as<std::shared_ptr<Iterator>>() == right.as<std::shared_ptr<Iterator>>();
  if (left.is<std::shared_ptr<const Callable>>())
    return left.as<std::shared_ptr<const Callable>>() == right.as<std::shared_ptr<const Callable>>();
  if (left.is<std::shared_ptr<Loop>>())
    return left.as<std::shared_ptr<Loop>>() == right.as<std::shared_ptr<Loop>>();
  return true;  // two undefined, two None
}

bool is_less(Runtime& runtime, const Value& left, const Value& right) {
  runtime.step();
  if (left.is_number() && right.is_number()) return compare_numbers(left, right) < 0;
  if (left.is_undefined()) runtime.fail_undefined(left);
  if (right.is_undefined()) runtime.fail_undefined(right);
  if (left.is_text() && right.is_text()) {
    runtime.scan(std::min(left.text().size(), right.text().size()));
    return left.text() < right.text();  // UTF-8 sorts as its code points do
  }
  if (left.is_list() && right.is_list() && left.list().flavour == right.list().flavour &&
      left.list().flavour <= List::Flavour::kTuple) {
    const auto& a = left.list().items;
    const auto& b = right.list().items;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      if (!equals(runtime, a[i], b[i])) return is_less(runtime, a[i], b[i]);
    return a.size() < b.size();
  }
  runtime.fail(fmt::format("'<' is not defined between '{}' and '{}'", type_name(left), type_name(right)));
}

bool contains(Runtime& runtime, const Value& haystack, const Value& needle) {
  if (haystack.is_text()) {
    if (!needle.is_text())
      runtime.fail(fmt::format("'in' a string needs a string on its left, not '{}'", type_name(needle)));
    runtime.scan(haystack.text().size());
    return haystack.text().find(needle.text()) != std::string::npos;
  }
  if (haystack.is_dict()) {
    if (!is_hashable(needle)) runtime.fail(fmt::format("'{}' cannot be a key", type_name(needle)));
    return find(runtime, haystack.dict(), needle) != nullptr;
  }
  const ListPtr items = iterate(runtime, haystack);
  return std::any_of(items->items.begin(), items->items.end(),
                     [&](const Value& item) { return equals(runtime, item, needle); });
}

std::string_view type_name(const Value& value) {
  if (value.is_undefined()) return "Undefined";
  if (value.is_none()) return "NoneType";
  if (value.is<bool>()) return "bool";
  if (value.is<int64_t>()) return "int";
  if (value.is<double>()) return "float";
  if (value.is_text()) return "str";
  if (value.is_dict()) return "dict";
  if (value.is<std::shared_ptr<Iterator>>()) return "generator";
  if (value.is<Namespace*>()) return "Namespace";
  if (value.is<std::shared_ptr<Loop>>()) return "LoopContext";
  if (value.is_list()) {
    switch (value.list().flavour) {
      case List::Flavour::kList: return "list";
      case List::Flavour::kTuple: return "tuple";
      case List::Flavour::kRange: return "range";
      case List::Flavour::kKeys: return "dict_keys";
      case List::Flavour::kValues: return "dict_values";
      case List::Flavour::kItems: return "dict_items";
    }
  }
  return value.as<std::shared_ptr<const Callable>>()->is_macro ? "Macro" : "function";
}

void append_str(Runtime& runtime, const Value& value, std::string& out) {
  if (value.is_text()) {
    runtime.check_room(out.size() + value.text().size());
    out += value.text();
  } else if (!value.is_undefined()) {
    append_repr(runtime, value, out);
  }
}

void append_repr(Runtime& runtime, const Value& value, std::string& out) {
  const Runtime::Nested nested(runtime);
  runtime.step();
  runtime.check_room(out.size());
  if (value.is_undefined()) {
    out += "Undefined";
  } else if (value.is_none()) {
    out += "None";
  } else if (value.is<bool>()) {
    out += value.as<bool>() ? "True" : "False";
  } else if (value.is<int64_t>()) {
    out += std::to_string(value.as<int64_t>());
  } else if (value.is<double>()) {
    out += float_repr(value.as<double>());
  } else if (value.is_text()) {
    runtime.scan(value.text().size());
    if (value.is_safe_text()) out += "Markup(";
    append_string_repr(value.text(), out);
    if (value.is_safe_text()) out += ')';
  } else if (value.is_list()) {
    append_list(runtime, value.list(), out);
  } else if (value.is_dict()) {
    append_entries(
        runtime, value.dict().entries, [&](const Value& key) { append_repr(runtime, key, out); }, out);
  } else if (value.is<Namespace*>()) {
    out += "<Namespace ";
    append_entries(
        runtime, value.as<Namespace*>()->attributes,
        [&](const std::string& key) { append_string_repr(key, out); }, out);
    out += '>';
  } else if (value.is<std::shared_ptr<Loop>>()) {
    Loop& loop = *value.as<std::shared_ptr<Loop>>();
    out += fmt::format("<LoopContext {}/{}>", loop.index(), loop.length());
  } else if (value.is<std::shared_ptr<const Callable>>() &&
             value.as<std::shared_ptr<const Callable>>()->is_macro) {
    out += "<Macro ";
    append_string_repr(value.as<std::shared_ptr<const Callable>>()->name, out);
    out += '>';
  } else {  // Python prints an address
    runtime.fail_unsupported(fmt::format("printing a {}", type_name(value)));
  }
}

std::string str(Runtime& runtime, const Value& value) {
  std::string out;
  append_str(runtime, value, out);
  runtime.allocate(out.size());
  return out;
}

const Value* find(Runtime& runtime, const Dict& dict, const Value& key) {
  for (const auto& [name, value] : dict.entries)
    if (equals(runtime, name, key)) return &value;
  return nullptr;
}

const Value* find(Runtime& runtime, const Dict& dict, std::string_view key) {
  runtime.step(dict.entries.size() / 8);
  for (const auto& [name, value] : dict.entries)
    if (name.is_text() && name.text() == key) return &value;
  return nullptr;
}

bool is_hashable(const Value& value) {
  if (value.is_dict()) return false;
  if (!value.is_list()) return true;
  const List& list = value.list();
  if (list.flavour == List::Flavour::kRange) return true;
  return list.flavour == List::Flavour::kTuple &&
         std::all_of(list.items.begin(), list.items.end(), is_hashable);
}

bool is_iterable(const Value& value) {
  return value.is_undefined() || value.is_text() || value.is_list() || value.is_dict() ||
         value.is<std::shared_ptr<Iterator>>() || value.is<std::shared_ptr<Loop>>();
}

ListPtr iterate(Runtime& runtime, const Value& value) {
  if (value.is_list()) return value.as<ListPtr>();
  auto items = std::make_shared<List>();
  if (value.is_text()) {
    const std::string& text = value.text();
    runtime.allocate(text.size() * (sizeof(Value) + sizeof(std::string)));
    for (size_t pos = 0; pos < text.size();) {
      const size_t start = pos;
      next_code_point(text, pos);
      items->items.push_back(runtime.text(text.substr(start, pos - start)));
    }
  } else if (value.is_dict()) {
    runtime.allocate(value.dict().entries.size() * sizeof(Value));
    for (const auto& [key, unused] : value.dict().entries) items->items.push_back(key);
    items->depth = value.dict().depth;
  } else if (value.is<std::shared_ptr<Iterator>>()) {
    Iterator& iterator = *value.as<std::shared_ptr<Iterator>>();
    runtime.allocate((iterator.items.size() - iterator.next) * sizeof(Value));
    items->items.assign(iterator.items.begin() + static_cast<std::ptrdiff_t>(iterator.next),
                        iterator.items.end());
    items->depth = iterator.depth;
    iterator.next = iterator.items.size();
  } else if (value.is<std::shared_ptr<Loop>>()) {
    runtime.fail_unsupported("iterating over 'loop'");
  } else if (!value.is_undefined()) {
    runtime.fail(fmt::format("'{}' cannot be iterated over", type_name(value)));
  }
  return items;
}

std::optional<int64_t> length(Runtime& runtime, const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.is_text()) {
    runtime.scan(value.text().size());
    return num_code_points(value.text());
  }
  if (value.is_list()) return static_cast<int64_t>(value.list().items.size());
  if (value.is_dict()) return static_cast<int64_t>(value.dict().entries.size());
  if (value.is<std::shared_ptr<Loop>>()) return value.as<std::shared_ptr<Loop>>()->length();
  return std::nullopt;
}

Value from_json(Runtime& runtime, const Json& json) {
  const Runtime::Nested nested(runtime);
  switch (json.type()) {
    case Json::value_t::null: return None{};
    case Json::value_t::boolean: return json.get<bool>();
    case Json::value_t::number_integer: return json.get<int64_t>();
    case Json::value_t::number_float: return json.get<double>();
    case Json::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
        runtime.fail_limit("bits in an integer", 64);
      return json.get<int64_t>();
    case Json::value_t::string: {
      const auto& text = json.get_ref<const std::string&>();
      if (!is_valid_utf8(text)) runtime.fail("a string given to the template is not UTF-8");
      return runtime.text(text);
    }
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const Json& item : json) items.push_back(from_json(runtime, item));
      return runtime.list(std::move(items));
    }
    case Json::value_t::object: {
      std::vector<std::pair<Value, Value>> entries;
      entries.reserve(json.size());
      for (const auto& [key, value] : json.items()) {
        if (!is_valid_utf8(key)) runtime.fail("a key given to the template is not UTF-8");
        entries.emplace_back(runtime.text(key), from_json(runtime, value));
      }
      return runtime.dict(std::move(entries));
    }
    default: runtime.fail("a value given to the template is not JSON");
  }
}

}  // namespace sinter::text::jinja
