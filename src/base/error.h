// The one error type. The library throws it and never prints, aborts or exits; the command line turns
// it into one line on stderr.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace sinter {

enum class ErrorKind {
  kUsage,        // the caller asked for something that makes no sense (exit code 2)
  kFile,         // missing, unreadable or truncated file
  kFormat,       // a file's content is not what its format demands
  kUnsupported,  // valid, but not implemented here: names what is missing
  kLimit,        // over a stated limit (context length, token id, depth)
  kMemory,       // not enough memory
  kInternal,     // a broken invariant of ours
};

std::string_view name(ErrorKind kind);

// One clear line: "<where>: expected <expected>, found <found>". `mend` says what to do about it.
struct ErrorDetail {
  std::string where;     // file, then key, tensor or line: "model.safetensors: tensor 'lm_head.weight'"
  std::string expected;  // empty when there is nothing to expect
  std::string found;
  std::string mend;  // empty when there is none
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, ErrorDetail detail);

  ErrorKind kind() const { return kind_; }
  const ErrorDetail& detail() const { return detail_; }

 private:
  ErrorKind kind_;
  ErrorDetail detail_;
};

namespace internal {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);
}

// For broken invariants of our own; never for bad input.
#define SINTER_CHECK(condition, ...)                                                              \
  do {                                                                                            \
    if (!(condition)) [[unlikely]]                                                                \
      ::sinter::internal::check_failed(__FILE__, __LINE__, #condition, fmt::format(__VA_ARGS__)); \
  } while (false)

}  // namespace sinter
