// What one rendering may use up, where in the template it is, and how its errors are said.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace sinter::text::jinja {

// Bounds on one rendering. A chat of a million tokens with a hundred tools takes a small part of them; a
// template that loops or doubles strings meets one within about a second.
struct Limits {
  size_t max_steps = 20'000'000;  // evaluated nodes, items walked over, 16-byte pieces of text read or made
  size_t max_bytes = size_t{256} << 20;  // all strings and lists made, freed ones included
  size_t max_output_bytes = size_t{64} << 20;
  int max_depth = 800;  // nested evaluations; a macro calling itself takes about ten
};

class Runtime {
 public:
  Runtime(std::string where, const Limits& limits) : where_(std::move(where)), limits_(limits) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  // The line that errors name.
  int line = 0;

  // Pay for work done, in steps or in bytes of text read.
  void step(size_t count = 1) {
    steps_ += count;
    if (steps_ > limits_.max_steps) [[unlikely]]
      fail_limit("steps", limits_.max_steps);
  }
  void scan(size_t bytes) { step(bytes / 16); }
  // Pay for bytes made; call it before making much.
  void allocate(size_t bytes) {
    if (bytes > limits_.max_bytes - bytes_) [[unlikely]]
      fail_limit("bytes of strings and lists", limits_.max_bytes);
    bytes_ += bytes;
    scan(bytes);
  }
  // Throws when `bytes`, not paid for yet, would not be granted.
  void check_room(size_t bytes) const {
    if (bytes > limits_.max_bytes - bytes_) [[unlikely]]
      fail_limit("bytes of strings and lists", limits_.max_bytes);
  }
  const Limits& limits() const { return limits_; }

  // Values made by the template, paid for.
  Value text(std::string text);
  Value list(std::vector<Value> items, List::Flavour flavour = List::Flavour::kList);
  Value dict(std::vector<std::pair<Value, Value>> entries);
  Value iterator(std::vector<Value> items);
  Value function(std::string name, std::function<Value(Runtime&, const Arguments&)> call, int depth = 1);
  // Owned here, so that a namespace that holds itself is freed.
  Namespace* make_namespace();
  int nested(int depth) const;  // one level more; throws over kMaxValueDepth

  // A fault of the template or of the values given to it.
  [[noreturn]] void fail(std::string message) const;
  [[noreturn]] void fail_undefined(const Value& undefined) const;
  // `raise_exception`: the template refuses the conversation.
  [[noreturn]] void refuse(std::string message) const;
  [[noreturn]] void fail_unsupported(std::string what) const;
  [[noreturn]] void fail_limit(std::string_view what, size_t limit) const;
  std::string where() const;

  // One nested evaluation. Bounds the machine stack.
  class Nested {
   public:
    explicit Nested(Runtime& runtime) : runtime_(runtime) {
      if (++runtime_.depth_ > runtime_.limits_.max_depth) {
        --runtime_.depth_;
        runtime_.fail_limit("nested calls", static_cast<size_t>(runtime_.limits_.max_depth));
      }
    }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    ~Nested() { --runtime_.depth_; }

   private:
    Runtime& runtime_;
  };

 private:
  std::string where_;
  Limits limits_;
  size_t steps_ = 0;
  size_t bytes_ = 0;
  int depth_ = 0;
  std::deque<Namespace> namespaces_;
};

}  // namespace sinter::text::jinja
