#include "base/error.h"

namespace sinter {
namespace {

// Found values come from files and can be of any length; a line for a person is not.
std::string shortened(const std::string& text) {
  constexpr size_t kMaxBytes = 1200;  // enough for the reasons of a dozen kernels
  if (text.size() <= kMaxBytes) return text;
  size_t end = kMaxBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // whole UTF-8 characters
  return text.substr(0, end) + "...";
}

std::string one_line(const ErrorDetail& detail) {
  std::string text = detail.where;
  if (!detail.expected.empty())
    text += fmt::format("{}expected {}", text.empty() ? "" : ": ", detail.expected);
  if (!detail.found.empty()) {
    const char* join = text.empty() ? "" : detail.expected.empty() ? ": " : ", found ";
    text += join + shortened(detail.found);
  }
  if (!detail.mend.empty()) text += fmt::format(" ({})", detail.mend);
  // Names come from files: neither line breaks nor terminal codes pass.
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text;
}

}  // namespace

std::string_view name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage: return "usage";
    case ErrorKind::kFile: return "file";
    case ErrorKind::kFormat: return "format";
    case ErrorKind::kUnsupported: return "unsupported";
    case ErrorKind::kLimit: return "limit";
    case ErrorKind::kMemory: return "memory";
    case ErrorKind::kInternal: return "internal";
  }
  return "internal";
}

Error::Error(ErrorKind kind, ErrorDetail detail)
    : std::runtime_error(one_line(detail)), kind_(kind), detail_(std::move(detail)) {}

void internal::check_failed(const char* file, int line, const char* condition, const std::string& message) {
  throw Error(ErrorKind::kInternal, {.where = fmt::format("{}:{}", file, line),
                                     .expected = condition,
                                     .found = message,
                                     .mend = "this is a bug in sinter, please report it"});
}

}  // namespace sinter
