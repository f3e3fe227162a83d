#include "text/jinja/runtime.h"

#include <algorithm>

#include "base/error.h"

namespace sinter::text::jinja {

Runtime::~Runtime() {
  // Attributes may hold bound methods and macros that refer to other namespaces: empty all, then free.
  for (Namespace& space : namespaces_) space.attributes.clear();
}

std::string Runtime::where() const { return fmt::format("{}: line {}", where_, line); }

void Runtime::fail(std::string message) const {
  throw Error(ErrorKind::kFormat,
              {.where = where(), .expected = {}, .found = std::move(message), .mend = {}});
}

void Runtime::fail_undefined(const Value& undefined) const {
  const auto& reason = undefined.as<Undefined>().reason;
  fail(reason ? *reason : "an undefined value is used");
}

void Runtime::refuse(std::string message) const {
  throw Error(ErrorKind::kUsage, {.where = where(),
                                  .expected = {},
                                  .found = "the template refuses the conversation: " + std::move(message),
                                  .mend = {}});
}

void Runtime::fail_unsupported(std::string what) const {
  throw Error(ErrorKind::kUnsupported,
              {.where = where(), .expected = {}, .found = std::move(what) + " is not supported", .mend = {}});
}

void Runtime::fail_limit(std::string_view what, size_t limit) const {
  throw Error(ErrorKind::kLimit, {.where = where(),
                                  .expected = fmt::format("a template that takes at most {} {}", limit, what),
                                  .found = "one that takes more",
                                  .mend = "does it loop without end?"});
}

int Runtime::nested(int inner) const {
  if (inner >= kMaxValueDepth) fail_limit("levels of nested values", kMaxValueDepth);
  return inner + 1;
}

Value Runtime::text(std::string text) {
  allocate(text.size());
  return Text{std::make_shared<const std::string>(std::move(text)), false};
}

Value Runtime::list(std::vector<Value> items, List::Flavour flavour) {
  allocate(items.size() * sizeof(Value));
  auto made = std::make_shared<List>();
  int inner = 0;
  for (const Value& item : items) inner = std::max(inner, jinja::depth(item));
  made->depth = nested(inner);
  made->items = std::move(items);
  made->flavour = flavour;
  return ListPtr(std::move(made));
}

Value Runtime::dict(std::vector<std::pair<Value, Value>> entries) {
  allocate(entries.size() * 2 * sizeof(Value));
  auto made = std::make_shared<Dict>();
  int inner = 0;
  for (const auto& [key, value] : entries) inner = std::max({inner, jinja::depth(key), jinja::depth(value)});
  made->depth = nested(inner);
  made->entries = std::move(entries);
  return DictPtr(std::move(made));
}

Value Runtime::iterator(std::vector<Value> items) {
  allocate(items.size() * sizeof(Value));
  auto made = std::make_shared<Iterator>();
  int inner = 0;
  for (const Value& item : items) inner = std::max(inner, jinja::depth(item));
  made->depth = nested(inner);
  made->items = std::move(items);
  return made;
}

Value Runtime::function(std::string name, std::function<Value(Runtime&, const Arguments&)> call, int inner) {
  allocate(sizeof(Callable));
  return std::make_shared<const Callable>(Callable{std::move(name), std::move(call), false, inner});
}

Namespace* Runtime::make_namespace() {
  allocate(sizeof(Namespace));
  return &namespaces_.emplace_back();
}

}  // namespace sinter::text::jinja
