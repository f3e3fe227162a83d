#include "cli/console.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/environment.h"

namespace sinter::cli {
namespace {

constexpr std::chrono::seconds kQuietTime{2};
constexpr std::chrono::milliseconds kRedrawTime{100};

std::string dump(const Json& json, int indent) {
  // Text of a model may hold half a character; a program that reads us still gets valid JSON.
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// A closed or full stderr must not hide the result, nor end the program.
void write_stderr(std::string_view text) { (void)std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace

Console::Console() : is_stderr_terminal_(::isatty(STDERR_FILENO) == 1) {
  has_color_ = ::isatty(STDOUT_FILENO) == 1 && !environment().no_color;
}

void Console::print(std::string_view text) const { std::fwrite(text.data(), 1, text.size(), stdout); }

void Console::emit(const Json& json_object) const { print(dump(json_object, 2) + "\n"); }

void Console::note(std::string_view text) const {
  if (!quiet) write_stderr(fmt::format("sinter: {}\n", text));
}

void Console::fail(ErrorKind kind, std::string_view message) const {
  write_stderr(fmt::format("sinter: error: {}\n", message));
  if (json) print(dump(Json{{"error", {{"kind", name(kind)}, {"message", message}}}}, -1) + "\n");
  std::fflush(stdout);
}

void Console::flush() const {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  const int error = errno;
  throw Error(
      ErrorKind::kFile,
      {.where = "stdout", .expected = "to write the result", .found = std::strerror(error), .mend = ""});
}

Progress::Progress(const Console& console, std::string label)
    : console_(console), label_(std::move(label)), begin_(Clock::now()), last_draw_(begin_) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (is_drawn_) write_stderr("\r\x1b[K");
  is_drawn_ = false;
}

void Progress::report(int64_t done, int64_t total) {
  if (!console_.is_stderr_terminal() || console_.quiet || total <= 0) return;
  const Clock::time_point now = Clock::now();
  if (now - begin_ < kQuietTime || now - last_draw_ < kRedrawTime) return;
  last_draw_ = now;
  is_drawn_ = true;
  constexpr int kWidth = 30;
  const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
  const int filled = static_cast<int>(share * kWidth);
  const double elapsed_s = std::chrono::duration<double>(now - begin_).count();
  const std::string left =
      share > 0.01 ? fmt::format(", {:.0f} s left", elapsed_s / share * (1 - share)) : std::string();
  write_stderr(fmt::format("\r\x1b[K{} [{:#<{}}{:.<{}}] {:.0f} %{}", label_, "", filled, "", kWidth - filled,
                           share * 100, left));
  std::fflush(stderr);
}

}  // namespace sinter::cli
