#include "base/log.h"

#include <mutex>
#include <set>

namespace sinter {
namespace {

LogSink& sink() {
  static LogSink instance;
  return instance;
}

}  // namespace

void set_log_sink(LogSink new_sink) { sink() = std::move(new_sink); }

void log(LogLevel level, std::string_view message) {
  if (sink()) sink()(level, message);
}

void log_once(LogLevel level, const std::string& message) {
  static std::mutex mutex;
  static std::set<std::string> seen;
  {
    std::lock_guard lock(mutex);
    if (!seen.insert(message).second) return;
  }
  log(level, message);
}

}  // namespace sinter
