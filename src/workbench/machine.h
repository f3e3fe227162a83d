// The machine: what it has, and which of its settings cost speed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/known_devices.h"

namespace sinter::workbench {

enum class Level : uint8_t { kNote, kOk, kWarning, kFailure };
std::string_view name(Level level);  // "note", "ok", "warn", "fail"

struct Finding {
  Level level;
  std::string subject;  // "huge pages"
  std::string text;
  std::string mend;  // what to do about it; empty when nothing
};

// CPU, memory, system settings, libraries of the GPU. Takes about a second, most of it the measurement of
// the read bandwidth.
std::vector<Finding> examine_machine();

// Bytes per second that all cores read, measured once per process on memory far larger than the caches.
double measured_read_bytes_per_s();

// This CPU as a device for a roofline. Matrix rates are unknown, so operations never limit.
KnownDevice measured_cpu();

}  // namespace sinter::workbench
