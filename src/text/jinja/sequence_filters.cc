#include "text/jinja/sequence_filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "text/jinja/filters.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/jinja/runtime.h"

namespace sinter::text::jinja {
namespace {

// "a.b.0": look-ups one after the other; digits are an index.
class Path {
 public:
  Path(Runtime& runtime, const Value& attribute) {
    if (!attribute.is_text()) {
      if (!attribute.is_none()) parts_.push_back(attribute);
      return;
    }
    std::string_view text = attribute.text();
    while (true) {
      const size_t dot = text.find('.');
      const std::string_view part = text.substr(0, dot);
      int64_t index = 0;
      const auto result = std::from_chars(part.data(), part.data() + part.size(), index);
      const bool is_index = !part.empty() && part[0] != '-' && result.ptr == part.data() + part.size() &&
                            result.ec == std::errc();
      parts_.push_back(is_index ? Value(index) : runtime.text(std::string(part)));
      if (dot == std::string_view::npos) return;
      text.remove_prefix(dot + 1);
    }
  }

  Value look_up(Runtime& runtime, Value object, const std::optional<Value>& otherwise = {}) const {
    for (const Value& part : parts_) {
      runtime.step();
      object = get_item(runtime, object, part);
      if (otherwise && object.is_undefined()) object = *otherwise;
    }
    return object;
  }

 private:
  std::vector<Value> parts_;
};

std::optional<Path> path_argument(Runtime& runtime, const std::optional<Value>& attribute) {
  if (!attribute || attribute->is_none()) return std::nullopt;
  return Path(runtime, *attribute);
}

bool flag(Runtime& runtime, const std::optional<Value>& value) { return value && is_true(runtime, *value); }

Value fold_case(Runtime& runtime, Value value, bool is_case_sensitive) {
  if (is_case_sensitive || !value.is_text()) return value;
  return runtime.text(lower(value.text()));
}

int64_t positive_argument(Runtime& runtime, std::string_view filter, const Value& value) {
  if (!value.is_integral() || value.integer() < 1)
    runtime.fail(fmt::format("{}: expected a positive integer", filter));
  return value.integer();
}

Arguments without_first(const Arguments& arguments, size_t count) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<std::ptrdiff_t>(count));
  return rest;
}

// Stable, by Python's `<` on the keys; `reverse` keeps equal ones in order too.
std::vector<Value> sorted(Runtime& runtime, std::vector<std::pair<Value, Value>> keyed, bool is_reversed) {
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& left, const auto& right) {
    return is_reversed ? is_less(runtime, right.first, left.first)
                       : is_less(runtime, left.first, right.first);
  });
  std::vector<Value> values;
  values.reserve(keyed.size());
  for (auto& [key, value] : keyed) values.push_back(std::move(value));
  return values;
}

}  // namespace

Value batch(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind(runtime, "batch", {"linecount", "fill_with"}, 1);
  const auto count = static_cast<size_t>(positive_argument(runtime, "batch", *bound[0]));
  const ListPtr all = iterate(runtime, value);
  std::vector<Value> batches;
  for (size_t begin = 0; begin < all->items.size(); begin += std::min(count, all->items.size())) {
    const size_t end = begin + std::min(count, all->items.size() - begin);
    std::vector<Value> part(all->items.begin() + static_cast<std::ptrdiff_t>(begin),
                            all->items.begin() + static_cast<std::ptrdiff_t>(end));
    if (bound[1] && !bound[1]->is_none() && part.size() < count) {
      runtime.allocate(count > runtime.limits().max_bytes ? SIZE_MAX : (count - part.size()) * sizeof(Value));
      part.resize(count, *bound[1]);
    }
    batches.push_back(runtime.list(std::move(part)));
  }
  return runtime.iterator(std::move(batches));
}

Value dict_sort(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind(runtime, "dictsort", {"case_sensitive", "by", "reverse"}, 0);
  const std::string by = bound[1] ? str(runtime, *bound[1]) : "key";
  if (by != "key" && by != "value")
    runtime.fail(fmt::format("dictsort: expected to sort by key or value, found '{}'", by));
  if (value.is_undefined()) runtime.fail_undefined(value);
  if (!value.is_dict()) runtime.fail(fmt::format("dictsort: expected a dict, found '{}'", type_name(value)));
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, item] : value.dict().entries)
    keyed.emplace_back(fold_case(runtime, by == "key" ? key : item, flag(runtime, bound[0])),
                       runtime.list({key, item}, List::Flavour::kTuple));
  return runtime.list(sorted(runtime, std::move(keyed), flag(runtime, bound[2])));
}

Value extreme(Runtime& runtime, const Value& value, const Arguments& arguments, bool wants_max) {
  const auto bound = arguments.bind(runtime, wants_max ? "max" : "min", {"case_sensitive", "attribute"}, 0);
  const auto path = path_argument(runtime, bound[1]);
  const ListPtr all = iterate(runtime, value);
  if (all->items.empty()) return Value::undefined("min or max of nothing");
  const Value* best = nullptr;
  Value best_key;
  for (const Value& item : all->items) {
    Value key = fold_case(runtime, path ? path->look_up(runtime, item) : item, flag(runtime, bound[0]));
    const bool is_better =
        best == nullptr || (wants_max ? is_less(runtime, best_key, key) : is_less(runtime, key, best_key));
    if (!is_better) continue;
    best = &item;
    best_key = std::move(key);
  }
  return *best;
}

Value first(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind(runtime, "first", {}, 0);
  if (value.is<std::shared_ptr<Iterator>>()) {
    Iterator& iterator = *value.as<std::shared_ptr<Iterator>>();
    if (iterator.next < iterator.items.size()) return iterator.items[iterator.next++];
  } else if (value.is_text() && !value.text().empty()) {
    size_t end = 0;
    next_code_point(value.text(), end);
    return runtime.text(value.text().substr(0, end));
  } else {
    const ListPtr all = iterate(runtime, value);
    if (!all->items.empty()) return all->items.front();
  }
  return Value::undefined("the first item of nothing");
}

Value items(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind(runtime, "items", {}, 0);
  if (value.is_undefined()) return runtime.iterator({});
  if (!value.is_dict()) runtime.fail(fmt::format("items: expected a dict, found '{}'", type_name(value)));
  std::vector<Value> pairs;
  for (const auto& [key, item] : value.dict().entries)
    pairs.push_back(runtime.list({key, item}, List::Flavour::kTuple));
  return runtime.iterator(std::move(pairs));
}

Value join_filter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind(runtime, "join", {"d", "attribute"}, 0);
  const auto path = path_argument(runtime, bound[1]);
  const std::string separator = bound[0] ? str(runtime, *bound[0]) : "";
  const ListPtr all = iterate(runtime, value);
  if (!path) return join(runtime, separator, all->items);
  std::vector<Value> parts;
  for (const Value& item : all->items) parts.push_back(path->look_up(runtime, item));
  return join(runtime, separator, parts);
}

Value last(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind(runtime, "last", {}, 0);
  if (value.is<std::shared_ptr<Iterator>>())
    runtime.fail("last: what a lazy filter gives has no end to start from");
  const ListPtr all = iterate(runtime, value);
  return all->items.empty() ? Value::undefined("the last item of nothing") : all->items.back();
}

Value list_filter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind(runtime, "list", {}, 0);
  return runtime.list(iterate(runtime, value)->items);
}

Value map(Runtime& runtime, const Value& value, const Arguments& arguments) {
  std::vector<Value> mapped;
  if (!is_true(runtime, value)) return runtime.iterator({});
  const ListPtr all = iterate(runtime, value);
  runtime.allocate(all->items.size() * sizeof(Value));
  if (arguments.positional.empty()) {
    const auto bound = arguments.bind(runtime, "map", {"attribute", "default"}, 1);
    const Path path(runtime, *bound[0]);
    const auto otherwise = bound[1] && !bound[1]->is_none() ? bound[1] : std::nullopt;
    for (const Value& item : all->items) mapped.push_back(path.look_up(runtime, item, otherwise));
    return runtime.iterator(std::move(mapped));
  }
  const std::string name = str(runtime, arguments.positional[0]);
  const Filter* filter = find_filter(name);
  if (filter == nullptr) runtime.fail_unsupported(fmt::format("the filter '{}'", name));
  const Arguments rest = without_first(arguments, 1);
  const Runtime::Nested nested(runtime);  // map('map', 'map', ...)
  for (const Value& item : all->items) mapped.push_back(apply(runtime, *filter, item, rest));
  return runtime.iterator(std::move(mapped));
}

Value reverse(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind(runtime, "reverse", {}, 0);
  if (value.is_text()) return slice(runtime, value, None{}, None{}, int64_t{-1});
  std::vector<Value> reversed = iterate(runtime, value)->items;
  std::reverse(reversed.begin(), reversed.end());
  return value.is<std::shared_ptr<Iterator>>() ? runtime.list(std::move(reversed))
                                               : runtime.iterator(std::move(reversed));
}

Value select(Runtime& runtime, const Value& value, const Arguments& arguments, bool by_attribute,
             bool keeps_passing) {
  const size_t num_paths = by_attribute ? 1 : 0;
  if (!is_true(runtime, value)) return runtime.iterator({});
  if (arguments.positional.size() < num_paths)
    runtime.fail("selectattr, rejectattr: the attribute is missing");
  const auto path = by_attribute ? std::optional(Path(runtime, arguments.positional[0])) : std::nullopt;
  const Test* test = nullptr;
  Arguments rest;
  if (arguments.positional.size() > num_paths) {
    const std::string name = str(runtime, arguments.positional[num_paths]);
    test = find_test(name);
    if (test == nullptr) runtime.fail_unsupported(fmt::format("the test '{}'", name));
    rest = without_first(arguments, num_paths + 1);
  }
  std::vector<Value> selected;
  const ListPtr all = iterate(runtime, value);
  for (const Value& item : all->items) {
    const Value tested = path ? path->look_up(runtime, item) : item;
    const bool passes = test != nullptr ? test->holds(runtime, tested, rest) : is_true(runtime, tested);
    runtime.step();
    if (passes == keeps_passing) selected.push_back(item);
  }
  return runtime.iterator(std::move(selected));
}

Value slice_filter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind(runtime, "slice", {"slices", "fill_with"}, 1);
  const auto count = static_cast<size_t>(positive_argument(runtime, "slice", *bound[0]));
  const ListPtr all = iterate(runtime, value);
  const size_t each = all->items.size() / count;
  const size_t num_longer = all->items.size() % count;
  std::vector<Value> slices;
  auto begin = all->items.begin();
  for (size_t i = 0; i < count; ++i) {
    const auto end = begin + static_cast<std::ptrdiff_t>(each + (i < num_longer ? 1 : 0));
    std::vector<Value> part(begin, end);
    if (bound[1] && !bound[1]->is_none() && i >= num_longer) part.push_back(*bound[1]);
    begin = end;
    runtime.step();
    slices.push_back(runtime.list(std::move(part)));
  }
  return runtime.iterator(std::move(slices));
}

Value sort(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind(runtime, "sort", {"reverse", "case_sensitive", "attribute"}, 0);
  const bool is_case_sensitive = flag(runtime, bound[1]);
  std::vector<Path> paths;  // "a,b.c"
  if (bound[2] && bound[2]->is_text()) {
    std::string_view text = bound[2]->text();
    for (size_t comma = 0; comma != std::string_view::npos; text.remove_prefix(comma + 1)) {
      comma = text.find(',');
      paths.emplace_back(runtime, runtime.text(std::string(text.substr(0, comma))));
      if (comma == std::string_view::npos) break;
    }
  } else if (bound[2]) {
    paths.emplace_back(runtime, *bound[2]);
  }
  std::vector<std::pair<Value, Value>> keyed;
  const ListPtr all = iterate(runtime, value);
  for (const Value& item : all->items) {
    std::vector<Value> keys;
    keys.reserve(paths.size() + 1);
    for (const Path& path : paths)
      keys.push_back(fold_case(runtime, path.look_up(runtime, item), is_case_sensitive));
    if (paths.empty()) keys.push_back(fold_case(runtime, item, is_case_sensitive));
    keyed.emplace_back(runtime.list(std::move(keys)), item);  // a list: equal keys need no order
  }
  return runtime.list(sorted(runtime, std::move(keyed), flag(runtime, bound[0])));
}

Value sum(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind(runtime, "sum", {"attribute", "start"}, 0);
  const auto path = path_argument(runtime, bound[0]);
  Value total = bound[1].value_or(int64_t{0});
  if (total.is_text()) runtime.fail("sum: strings are joined with 'join'");
  const ListPtr all = iterate(runtime, value);
  for (const Value& item : all->items) {
    runtime.step();
    total = binary(runtime, Binary::kAdd, total, path ? path->look_up(runtime, item) : item);
  }
  return total;
}

Value unique(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind(runtime, "unique", {"case_sensitive", "attribute"}, 0);
  const auto path = path_argument(runtime, bound[1]);
  std::vector<Value> seen, kept;
  const ListPtr all = iterate(runtime, value);
  for (const Value& item : all->items) {
    Value key = fold_case(runtime, path ? path->look_up(runtime, item) : item, flag(runtime, bound[0]));
    if (!is_hashable(key)) runtime.fail(fmt::format("unique: '{}' cannot be a key", type_name(key)));
    if (std::any_of(seen.begin(), seen.end(),
                    [&](const Value& other) { return equals(runtime, other, key); }))
      continue;
    seen.push_back(std::move(key));
    kept.push_back(item);
  }
  return runtime.iterator(std::move(kept));
}

}  // namespace sinter::text::jinja
