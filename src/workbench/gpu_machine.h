// The GPUs of this machine and what around them costs speed.
#pragma once

#include <optional>
#include <vector>

#include "device/gpu_info.h"
#include "device/nvml.h"
#include "jit/nvrtc.h"
#include "workbench/machine.h"

namespace sinter::workbench {

// Driver, compiler, every GPU, the links between them, and settings of the host that only matter with a GPU.
// Makes no context on any GPU.
std::vector<Finding> examine_gpus();

// Parts of it, from facts.
std::vector<Finding> examine_gpu(const GpuInfo& gpu, const GpuTelemetry& telemetry);
// `cuda_version`: the newest that the driver runs; 0: no driver.
Finding examine_nvrtc(const jit::NvrtcFound& found, int cuda_version);
// has_access[i][j]: GPU i reaches the memory of GPU j.
Finding examine_peers(const std::vector<std::vector<bool>>& has_access);

// Bytes of a GPU that are free now; its whole memory where nobody tells.
int64_t free_memory_bytes(const GpuInfo& gpu);

}  // namespace sinter::workbench
