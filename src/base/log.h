// What the library has to tell a person while it works. The command line decides where it goes
// (stderr); without a sink nothing is written.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace sinter {

enum class LogLevel { kDebug, kInfo, kWarning };

using LogSink = std::function<void(LogLevel, std::string_view)>;

// Set once at start, before other threads exist.
void set_log_sink(LogSink sink);
void log(LogLevel level, std::string_view message);
// Each distinct message once per process: for choices that cost speed or accuracy.
void log_once(LogLevel level, const std::string& message);

}  // namespace sinter
