#include "text/jinja/loop.h"

#include "text/jinja/runtime.h"

namespace sinter::text::jinja {

std::optional<Value> Loop::pull() {
  while (next_ < items_->items.size()) {
    const Value& item = items_->items[next_++];
    if (!test_ || test_(item)) return item;
  }
  return std::nullopt;
}

bool Loop::has_next() {
  if (!after_) after_ = pull();
  return after_.has_value();
}

bool Loop::advance() {
  if (!has_next()) return false;
  ++index0_;
  previous_ = std::move(current_);
  current_ = *std::exchange(after_, std::nullopt);
  return true;
}

void Loop::finish() {
  next_ = items_->items.size();
  test_ = nullptr;
}

int64_t Loop::length() {
  if (length_) return *length_;
  if (!test_) {
    length_ = static_cast<int64_t>(items_->items.size());
    return *length_;
  }
  auto rest = std::make_shared<List>();
  rest->depth = items_->depth;
  if (has_next()) rest->items.push_back(*after_);
  while (std::optional<Value> item = pull()) rest->items.push_back(std::move(*item));
  after_.reset();
  length_ = index() + static_cast<int64_t>(rest->items.size());
  items_ = std::move(rest);
  next_ = 0;
  test_ = nullptr;
  return *length_;
}

std::optional<Value> Loop::attribute(Runtime& runtime, std::string_view name) {
  if (name == "index") return Value(index());
  if (name == "index0") return Value(index0_);
  if (name == "first") return Value(index0_ == 0);
  if (name == "last") return Value(!has_next());
  if (name == "length") return Value(length());
  if (name == "revindex") return Value(length() - index0_);
  if (name == "revindex0") return Value(length() - index());
  if (name == "depth") return Value(int64_t{1});
  if (name == "depth0") return Value(int64_t{0});
  if (name == "previtem") return index0_ == 0 ? Value::undefined("there is no previous item") : previous_;
  if (name == "nextitem") return has_next() ? *after_ : Value::undefined("there is no next item");
  if (name == "cycle")
    return runtime.function("cycle", [index0 = index0_](Runtime& rt, const Arguments& arguments) {
      const auto& values = arguments.positional;
      if (values.empty()) rt.fail("loop.cycle() needs at least one value");
      return values[static_cast<size_t>(index0) % values.size()];
    });
  if (name == "changed") runtime.fail_unsupported("loop.changed");
  return std::nullopt;
}

}  // namespace sinter::text::jinja
