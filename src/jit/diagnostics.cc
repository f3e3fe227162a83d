#include "jit/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>

namespace sinter::jit {
namespace {

struct ErrorLine {
  std::string where, text;  // no text: not the line of an error
};

// The front end: "cuda/a.cu(12): error: identifier "x" is undefined", also "catastrophic error", "error
// #20-D".
ErrorLine front_end_error(std::string_view line) {
  const size_t end = line.find("): ");
  if (end == std::string_view::npos) return {};
  const size_t begin = line.rfind('(', end);
  const std::string_view rest = line.substr(end + 3);
  const size_t colon = rest.find(": ");
  if (begin == std::string_view::npos || colon == std::string_view::npos) return {};
  if (rest.substr(0, colon).find("error") == std::string_view::npos) return {};
  return {fmt::format("{}:{}", line.substr(0, begin), line.substr(begin + 1, end - begin - 1)),
          std::string(rest.substr(colon + 2))};
}

// "ptxas application ptx input, line 25; error   : ...", "ptxas fatal   : ...", "nvrtc: error: ...".
ErrorLine tool_error(std::string_view line) {
  if (!line.starts_with("ptxas") && !line.starts_with("nvrtc")) return {};
  const size_t kind = std::min(line.find("error"), line.find("fatal"));
  const size_t colon = kind == std::string_view::npos ? kind : line.find(": ", kind);
  if (colon == std::string_view::npos) return {};
  return {{}, std::string(line.substr(colon + 2))};
}

}  // namespace

Diagnostics parse_errors(std::string_view log, std::string_view path) {
  Diagnostics errors;
  std::string last_where;
  for (size_t begin = 0; begin < log.size();) {
    const size_t end = std::min(log.find('\n', begin), log.size());
    const std::string_view line = log.substr(begin, end - begin);
    begin = end + 1;
    ErrorLine error = front_end_error(line);
    if (error.text.empty()) error = tool_error(line);
    if (error.text.empty()) continue;
    if (errors.text.empty()) {
      errors.where = error.where;
      errors.text = error.text;
    } else {
      const bool moved = !error.where.empty() && error.where != last_where;
      errors.text += fmt::format("; {}{}{}", moved ? error.where : "", moved ? ": " : "", error.text);
    }
    if (!error.where.empty()) last_where = std::move(error.where);
  }
  if (errors.text.empty()) errors.text = log;
  if (errors.where.empty()) errors.where = path;
  return errors;
}

}  // namespace sinter::jit
