// What a GPU can reach at best, measured on it: what speeds are stated against.
#pragma once

#include <filesystem>
#include <string>

#include "device/gpu_device.h"
#include "jit/compiler.h"

namespace sinter::measure {

struct GpuCeilings {
  double read_gb_per_s = 0;     // plain 16-byte loads of gigabytes, best of several shapes, median of rounds
  double copy_gb_per_s = 0;     // the same, bytes read plus bytes written
  double mma_bf16_tflops = 0;   // mma.sync.m16n8k16 from registers; wgmma and tcgen05 reach more
  double launch_gap_us = 0;     // from one empty kernel to the next in a graph, one block per multiprocessor
  std::string read_shape = {};  // "8 lines x 4 blocks"

  bool operator==(const GpuCeilings&) const = default;
};

// Takes about a second, and up to 4 GB of free memory (a quarter of what is free). Throws Error(kMemory) with
// less than 256 MB of it, and what compiling throws.
GpuCeilings measure_gpu_ceilings(const GpuDevice& device, const jit::Compiler& compiler);

// From `folder`, where the same GPU with the same driver was measured before; else measured and kept there. A
// file that cannot be read is measured anew, one that cannot be written is left.
GpuCeilings gpu_ceilings(const GpuDevice& device, const jit::Compiler& compiler,
                         const std::filesystem::path& folder);

}  // namespace sinter::measure
