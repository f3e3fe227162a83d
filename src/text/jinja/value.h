// Values of a template, with Python's meaning: what `str`, `repr`, `==`, truth and order of a value are.
//
// A value never changes once made (the sandbox that Hugging Face renders in forbids it), with one exception:
// the attributes of a namespace. Nesting is bounded when a value is made (`kMaxValueDepth`), so that
// printing, comparing and freeing may recurse.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json_fwd.h"

namespace sinter::text::jinja {

class Runtime;
class Loop;
class Value;
struct Callable;
struct Dict;
struct Iterator;
struct List;
struct Namespace;

inline constexpr int kMaxValueDepth = 100;

struct Undefined {
  std::shared_ptr<const std::string> reason;  // what to say when it is used: "'tools' is undefined"
};
struct None {};
struct Text {
  std::shared_ptr<const std::string> text;  // valid UTF-8
  bool is_safe = false;                     // went through `safe` or `escape`: `+` escapes its neighbour
};
using ListPtr = std::shared_ptr<const List>;
using DictPtr = std::shared_ptr<const Dict>;

class Value {
 public:
  using Storage =
      std::variant<Undefined, None, bool, int64_t, double, Text, ListPtr, DictPtr, std::shared_ptr<Iterator>,
                   Namespace*, std::shared_ptr<const Callable>, std::shared_ptr<Loop>>;

  Value() = default;  // undefined
  Value(None) : storage_(None{}) {}
  Value(bool value) : storage_(value) {}
  Value(int64_t value) : storage_(value) {}
  Value(double value) : storage_(value) {}
  Value(Text value) : storage_(std::move(value)) {}
  Value(ListPtr value) : storage_(std::move(value)) {}
  Value(DictPtr value) : storage_(std::move(value)) {}
  Value(std::shared_ptr<Iterator> value) : storage_(std::move(value)) {}
  Value(Namespace* value) : storage_(value) {}
  Value(std::shared_ptr<const Callable> value) : storage_(std::move(value)) {}
  Value(std::shared_ptr<Loop> value) : storage_(std::move(value)) {}
  Value(const char*) = delete;  // would become a bool

  static Value undefined(std::string reason);

  const Storage& storage() const { return storage_; }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(storage_);
  }
  template <class T>
  const T& as() const {
    return std::get<T>(storage_);
  }

  bool is_undefined() const { return is<Undefined>(); }
  bool is_none() const { return is<None>(); }
  bool is_text() const { return is<Text>(); }
  bool is_safe_text() const { return is_text() && as<Text>().is_safe; }
  bool is_list() const { return is<ListPtr>(); }
  bool is_dict() const { return is<DictPtr>(); }
  // bool is a number in Python: True + 1 == 2.
  bool is_integral() const { return is<int64_t>() || is<bool>(); }
  bool is_number() const { return is_integral() || is<double>(); }

  const std::string& text() const { return *as<Text>().text; }
  const List& list() const { return *as<ListPtr>(); }
  const Dict& dict() const { return *as<DictPtr>(); }
  int64_t integer() const { return is<bool>() ? int64_t{as<bool>()} : as<int64_t>(); }
  double number() const { return is<double>() ? as<double>() : static_cast<double>(integer()); }

 private:
  Storage storage_;
};

// Everything with a length and a fixed order. Only kList and kTuple (and kRange) can be indexed, as in
// Python.
struct List {
  enum class Flavour : uint8_t { kList, kTuple, kRange, kKeys, kValues, kItems };
  std::vector<Value> items;
  Flavour flavour = Flavour::kList;
  int depth = 1;
  int64_t start = 0, stop = 0, step = 1;  // kRange: as written, for its repr

  bool is_indexable() const { return flavour <= Flavour::kRange; }
};

// Keeps the order of insertion. Look-up is linear: objects of a chat are small, and each step is paid for.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  int depth = 1;
};

// What a lazy filter gives: no length, no index, empty after it was walked through once.
struct Iterator {
  std::vector<Value> items;
  size_t next = 0;
  int depth = 1;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;

  const Value* find(std::string_view name) const;
  void set(std::string_view name, Value value);
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;

  // The values of the parameters `names`, in their order; what was not passed is empty. A name that starts
  // with '/' takes no keyword. Throws on unknown, surplus, doubled, and missing (first `num_required`) ones.
  std::vector<std::optional<Value>> bind(Runtime& runtime, std::string_view callee,
                                         std::initializer_list<std::string_view> names,
                                         size_t num_required) const;
};

struct Callable {
  std::string name;
  std::function<Value(Runtime&, const Arguments&)> call;
  bool is_macro = false;
  int depth = 1;
};

int depth(const Value& value);
bool is_true(Runtime& runtime, const Value& value);
bool equals(Runtime& runtime, const Value& left, const Value& right);
// Python's `<`; throws where Python does (a string and a number, two dicts, ...).
bool is_less(Runtime& runtime, const Value& left, const Value& right);
// Python's `needle in haystack`.
bool contains(Runtime& runtime, const Value& haystack, const Value& needle);

// "str", "int", "dict", ... as Python names them in its errors.
std::string_view type_name(const Value& value);
// str() and repr(); undefined prints as nothing.
void append_str(Runtime& runtime, const Value& value, std::string& out);
void append_repr(Runtime& runtime, const Value& value, std::string& out);
std::string str(Runtime& runtime, const Value& value);

const Value* find(Runtime& runtime, const Dict& dict, const Value& key);
const Value* find(Runtime& runtime, const Dict& dict, std::string_view key);
bool is_hashable(const Value& value);

bool is_iterable(const Value& value);
// The items of anything iterable; an iterator is used up by it. Throws for the rest.
ListPtr iterate(Runtime& runtime, const Value& value);
// len(); empty where Python has none.
std::optional<int64_t> length(Runtime& runtime, const Value& value);

Value from_json(Runtime& runtime, const Json& json);

}  // namespace sinter::text::jinja
