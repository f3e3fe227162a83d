#include "text/jinja/globals.h"

#include <fmt/format.h>

#include <array>

#include "text/jinja/python_text.h"
#include "text/jinja/runtime.h"

namespace sinter::text::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // of jinja2's sandbox

Value range(Runtime& runtime, const Arguments& arguments) {
  const auto bound = arguments.bind(runtime, "range", {"/start", "/stop", "/step"}, 1);
  const auto integer = [&](const std::optional<Value>& value, int64_t otherwise) {
    if (!value) return otherwise;
    if (value->is_undefined()) runtime.fail_undefined(*value);
    if (!value->is_integral())
      runtime.fail(fmt::format("range() needs integers, not '{}'", type_name(*value)));
    return value->integer();
  };
  auto made = std::make_shared<List>();
  made->flavour = List::Flavour::kRange;
  made->start = bound[1] ? integer(bound[0], 0) : 0;
  made->stop = integer(bound[1] ? bound[1] : bound[0], 0);
  made->step = integer(bound[2], 1);
  if (made->step == 0) runtime.fail("range() needs a step that is not 0");
  const bool is_up = made->step > 0;
  // Unsigned: the span of two int64_t may not fit one.
  const uint64_t stride = is_up ? static_cast<uint64_t>(made->step) : -static_cast<uint64_t>(made->step);
  const bool is_empty = is_up ? made->start >= made->stop : made->start <= made->stop;
  const uint64_t span = is_up ? static_cast<uint64_t>(made->stop) - static_cast<uint64_t>(made->start)
                              : static_cast<uint64_t>(made->start) - static_cast<uint64_t>(made->stop);
  const uint64_t count = is_empty ? 0 : (span - 1) / stride + 1;
  if (count > kMaxRange) runtime.fail_limit("numbers in a range", kMaxRange);
  runtime.allocate(count * sizeof(Value));
  made->items.reserve(count);
  for (uint64_t i = 0; i < count; ++i)
    made->items.emplace_back(made->start + static_cast<int64_t>(i) * made->step);
  return ListPtr(std::move(made));
}

// dict(), dict(mapping), dict(pairs), each with keywords.
std::vector<std::pair<Value, Value>> read_dict(Runtime& runtime, std::string_view name,
                                               const Arguments& arguments) {
  std::vector<std::pair<Value, Value>> entries;
  const auto set = [&](const Value& key, const Value& value) {
    if (!is_hashable(key)) runtime.fail(fmt::format("'{}' cannot be a key", type_name(key)));
    for (auto& [old_key, old_value] : entries)
      if (equals(runtime, old_key, key)) {
        old_value = value;
        return;
      }
    entries.emplace_back(key, value);
  };
  if (arguments.positional.size() > 1)
    runtime.fail(fmt::format("{}() takes at most one positional argument", name));
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional[0];
    if (from.is_dict()) {
      entries = from.dict().entries;
    } else {
      const ListPtr pairs = iterate(runtime, from);
      for (const Value& pair : pairs->items) {
        const ListPtr parts = iterate(runtime, pair);
        if (parts->items.size() != 2) runtime.fail(fmt::format("{}() needs pairs", name));
        set(parts->items[0], parts->items[1]);
      }
    }
  }
  for (const auto& [key, value] : arguments.keywords) set(runtime.text(key), value);
  return entries;
}

Value make_dict(Runtime& runtime, const Arguments& arguments) {
  return runtime.dict(read_dict(runtime, "dict", arguments));
}

Value make_namespace(Runtime& runtime, const Arguments& arguments) {
  Namespace* made = runtime.make_namespace();
  for (auto& [key, value] : read_dict(runtime, "namespace", arguments)) {
    if (!key.is_text()) runtime.fail("namespace() needs names that are strings");
    made->set(key.text(), value);
  }
  return made;
}

Value raise_exception(Runtime& runtime, const Arguments& arguments) {
  const auto bound = arguments.bind(runtime, "raise_exception", {"message"}, 1);
  runtime.refuse(str(runtime, *bound[0]));
}

Value format_time(Runtime& runtime, const Arguments& arguments, std::time_t now) {
  const auto bound = arguments.bind(runtime, "strftime_now", {"format"}, 1);
  if (!bound[0]->is_text()) runtime.fail("strftime_now() needs a string");
  const std::string& format = bound[0]->text();
  if (format.empty()) return *bound[0];
  if (format.size() > 1000 || format.find('\0') != std::string::npos)
    runtime.fail_limit("characters in a format of time", 1000);
  std::tm local{};
  localtime_r(&now, &local);
  // A directive writes at most some hundred bytes, but a glibc width ("%99999999d") any number: too small a
  // buffer gives 0, as an empty result does.
  std::string text(64 * 1024, '\0');
  text.resize(std::strftime(text.data(), text.size(), format.c_str(), &local));
  if (!is_valid_utf8(text)) runtime.fail("strftime_now(): the result is not UTF-8");
  return runtime.text(std::move(text));
}

}  // namespace

Value global_function(Runtime& runtime, std::string_view name, std::time_t now) {
  static constexpr std::array<std::string_view, 4> kUnsupported = {"cycler", "joiner", "lipsum", "self"};
  for (const std::string_view unsupported : kUnsupported)
    if (name == unsupported) runtime.fail_unsupported(fmt::format("'{}'", name));
  if (name == "range") return runtime.function("range", range);
  if (name == "dict") return runtime.function("dict", make_dict);
  if (name == "namespace") return runtime.function("namespace", make_namespace);
  if (name == "raise_exception") return runtime.function("raise_exception", raise_exception);
  if (name == "strftime_now")
    return runtime.function("strftime_now", [now](Runtime& rt, const Arguments& arguments) {
      return format_time(rt, arguments, now);
    });
  return Value::undefined(fmt::format("'{}' is undefined", name));
}

}  // namespace sinter::text::jinja
