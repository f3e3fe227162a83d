// The state of one {% for %}, which the template sees as `loop`.
#pragma once

#include <functional>
#include <optional>

#include "text/jinja/value.h"

namespace sinter::text::jinja {

// Items are tested by the loop's `if` only when they are needed, as in jinja2: the body may change what the
// test reads. `loop.last` and `loop.nextitem` look one item ahead, `loop.length` looks at all.
class Loop {
 public:
  using Test = std::function<bool(const Value&)>;

  Loop(ListPtr items, Test test) : items_(std::move(items)), test_(std::move(test)) {}

  bool advance();  // false at the end
  const Value& current() const { return current_; }
  // After the loop: what `test` refers to may be gone, `loop` may have been kept in a namespace.
  void finish();

  // loop.NAME; empty when there is no such name.
  std::optional<Value> attribute(Runtime& runtime, std::string_view name);
  int64_t length();
  int64_t index() const { return index0_ + 1; }
  const ListPtr& items() const { return items_; }

 private:
  std::optional<Value> pull();
  bool has_next();

  ListPtr items_;
  Test test_;
  size_t next_ = 0;
  int64_t index0_ = -1;
  Value previous_, current_;
  std::optional<Value> after_;  // looked ahead
  std::optional<int64_t> length_;
};

}  // namespace sinter::text::jinja
