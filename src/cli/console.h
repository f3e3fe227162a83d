// Where a verb writes: results on stdout, everything else on stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json_fwd.h"
#include "base/log.h"

namespace sinter::cli {

class Console {
 public:
  Console();

  bool json = false;   // one JSON object on stdout
  bool quiet = false;  // no notes, no progress

  // Escape sequences allowed on stdout: a terminal, and NO_COLOR not set.
  bool has_color() const { return has_color_; }
  bool is_stderr_terminal() const { return is_stderr_terminal_; }

  void print(std::string_view text) const;   // stdout, as it is
  void emit(const Json& json_object) const;  // stdout
  void note(std::string_view text) const;    // stderr, one line, "sinter: " before it
  void fail(ErrorKind kind, std::string_view message) const;
  // Throws Error(kFile) when what was printed could not be written (a full disk).
  void flush() const;

 private:
  bool has_color_, is_stderr_terminal_;
};

// A bar on stderr for what takes longer than two seconds. Silent when stderr is not a terminal.
class Progress {
 public:
  Progress(const Console& console, std::string label);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void report(int64_t done, int64_t total);
  void clear();  // takes the bar away, for other output
  std::function<void(int64_t, int64_t)> callback() {
    return [this](int64_t done, int64_t total) { report(done, total); };
  }

 private:
  using Clock = std::chrono::steady_clock;
  const Console& console_;
  std::string label_;
  Clock::time_point begin_, last_draw_;
  bool is_drawn_ = false;
};

}  // namespace sinter::cli
