// The device that computes: facts that kernels ask about. Architecture numbers are compared here only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "device/gpu_info.h"

namespace sinter {

// Instruction sets of the CPU that the kernels know. Usable means: present and enabled by the system.
struct CpuFeatures {
  bool avx2 = false;    // with FMA and F16C
  bool avx512 = false;  // F, BW, DQ, VL
  bool avx512_vbmi = false;
  bool avx512_bf16 = false;
  bool avx512_vnni = false;
  // VDPBF16PS, one a cycle on a Zen 4, takes 2.8 cycles on Intel's cores (measured on a Xeon, family 6 model
  // 207): kernels that can do without it do.
  bool slow_dpbf16 = false;
};

struct DeviceInfo {
  std::string name;  // "AMD EPYC 9654" or "NVIDIA H200"
  CpuFeatures cpu;
  int num_cores = 1;  // that this process may use
  uint64_t memory_bytes = 0;
  uint64_t l2_bytes = 0, l3_bytes = 0;
  std::optional<GpuInfo> gpu{};  // none: the device is a CPU
};

// `features` without what is above `isa`: "scalar", "avx2" or "avx512" (F, BW, DQ, VL and no more); empty
// hides nothing. Throws Error(kUsage) on other names.
CpuFeatures limit_isa(CpuFeatures features, std::string_view isa);

// This machine's CPU, read once. SINTER_CPU_ISA=scalar|avx2|avx512 hides what is above it.
const DeviceInfo& host_device();

DeviceInfo device_info(const GpuInfo& gpu);
// A GPU of an architecture, present or not, to compile for: its limits; what its chips differ in
// (multiprocessors, memory, L2, clocks) is 0.
DeviceInfo device_info(const Arch& arch);

}  // namespace sinter
