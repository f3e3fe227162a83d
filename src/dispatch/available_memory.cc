#include <fstream>
#include <optional>
#include <string>

#include "dispatch/dispatch.h"

namespace sinter::dispatch {
namespace {

// The number in a file of one number; "max" and anything else is none.
std::optional<uint64_t> read_number(const std::string& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

// The value of a line "KEY VALUE" or "KEY: VALUE kB", as it stands.
std::optional<uint64_t> read_field(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    uint64_t value = 0;
    if (word == key && file >> value) return value;
  }
  return std::nullopt;
}

}  // namespace

uint64_t available_memory_bytes() {
  uint64_t available_bytes = read_field("/proc/meminfo", "MemAvailable:").value_or(0) * 1024;
  // Inside a container the control group is mounted as the root of the hierarchy. Version 2, then 1.
  struct Files {
    const char *limit, *used, *stat, *cached;
  };
  for (const Files& files : {Files{"memory.max", "memory.current", "memory.stat", "inactive_file"},
                             Files{"memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes",
                                   "memory/memory.stat", "total_inactive_file"}}) {
    const std::string folder = "/sys/fs/cgroup/";
    const auto limit = read_number(folder + files.limit);
    const auto used = read_number(folder + files.used);
    if (!limit || !used) continue;
    const uint64_t cached = read_field(folder + files.stat, files.cached).value_or(0);
    const uint64_t kept = *used > cached ? *used - cached : 0;
    const uint64_t left = *limit > kept ? *limit - kept : 0;
    if (available_bytes == 0 || left < available_bytes) available_bytes = left;
  }
  return available_bytes;
}

}  // namespace sinter::dispatch
