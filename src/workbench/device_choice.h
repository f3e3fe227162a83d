// Which device a verb computes on, and which one it asks about.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "device/device_info.h"
#include "device/gpu_device.h"

namespace sinter::workbench {

struct DeviceChoice {
  enum class Kind { kAuto, kCpu, kGpu };
  Kind kind = Kind::kAuto;
  int gpu_idx = 0;
};

// "auto", "cpu", "gpu" or "gpu:1". Throws Error(kUsage).
DeviceChoice parse_device(std::string_view text);

// The GPU that is meant; none: the CPU. kAuto takes the first GPU where it can be used; a driver whose GPUs
// cannot be used, or that lacks a compiler for them, is said once. kGpu throws Error(kUnsupported) instead.
std::optional<GpuDevice> open_device(const DeviceChoice& choice);

// A device to ask about, present or not: as parse_device(), or an architecture ("sm_120a"), or a known device
// ("h200"). Throws Error(kUsage), or Error(kUnsupported) for a GPU that is not there.
DeviceInfo find_device_info(std::string_view text);
// An architecture by its own name or that of a known device. Throws Error(kUsage) naming all.
const Arch& find_target(std::string_view text);

}  // namespace sinter::workbench
