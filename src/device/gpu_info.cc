#include "device/gpu_info.h"

#include <fmt/core.h>

#include "base/error.h"
#include "device/cuda_driver.h"
#include "device/device_info.h"

namespace sinter {
namespace {

using namespace cuda_abi;

std::string uuid_text(const CUuuid& uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid.bytes[i]);
  }
  return text;
}

}  // namespace

std::string GpuInfo::unsupported_reason() const {
  if (arch != nullptr) return {};
  const Arch& oldest = archs().front();
  const bool is_older = major < oldest.major || (major == oldest.major && minor < oldest.minor);
  return fmt::format("compute capability {}.{} is {}", major, minor,
                     is_older ? fmt::format("older than {}.{}", oldest.major, oldest.minor)
                              : "not one that this version of sinter has kernels for");
}

GpuInfo read_gpu(const CudaDriver& driver, int device_idx) {
  const std::string where = fmt::format("GPU {}", device_idx);
  CUdevice device = 0;
  driver.check(driver.cuDeviceGet(&device, device_idx), "cuDeviceGet", where);
  const auto attribute = [&](DeviceAttribute which) {
    int value = 0;
    driver.check(driver.cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute", where);
    return value;
  };
  // Newer attributes and those that integrated GPUs refuse: what is not told is 0.
  const auto optional_attribute = [&](DeviceAttribute which, int otherwise) {
    int value = 0;
    return driver.cuDeviceGetAttribute(&value, which, device) == kSuccess ? value : otherwise;
  };

  GpuInfo info;
  info.device_idx = device_idx;
  char text[256] = {};
  driver.check(driver.cuDeviceGetName(text, sizeof(text) - 1, device), "cuDeviceGetName", where);
  info.name = text;
  info.major = attribute(kComputeCapabilityMajor);
  info.minor = attribute(kComputeCapabilityMinor);
  info.arch = arch_of(info.major, info.minor);
  info.cuda_version = driver.version;
  CUuuid uuid{};
  if (driver.cuDeviceGetUuid(&uuid, device) == kSuccess) info.uuid = uuid_text(uuid);
  char bus_id[32] = {};
  if (driver.cuDeviceGetPCIBusId(bus_id, sizeof(bus_id) - 1, device) == kSuccess) info.pci_bus_id = bus_id;
  info.numa_node = optional_attribute(kHostNumaId, -1);

  info.num_sms = attribute(kMultiprocessorCount);
  size_t memory_bytes = 0;
  driver.check(driver.cuDeviceTotalMem(&memory_bytes, device), "cuDeviceTotalMem", where);
  info.memory_bytes = static_cast<int64_t>(memory_bytes);
  info.l2_bytes = attribute(kL2CacheSize);
  info.block_shared_bytes = attribute(kMaxSharedMemoryPerBlockOptin);
  info.sm_shared_bytes = attribute(kMaxSharedMemoryPerMultiprocessor);
  info.sm_registers = attribute(kMaxRegistersPerMultiprocessor);
  info.sm_threads = attribute(kMaxThreadsPerMultiprocessor);
  info.sm_clock_mhz = optional_attribute(kClockRateKhz, 0) / 1000;
  info.memory_clock_mhz = optional_attribute(kMemoryClockRateKhz, 0) / 1000;
  info.memory_bus_bits = optional_attribute(kGlobalMemoryBusWidth, 0);
  info.shares_host_memory = optional_attribute(kIntegrated, 0) != 0;
  info.reads_pageable_memory = optional_attribute(kPageableMemoryAccess, 0) != 0;
  info.registers_read_only_memory = optional_attribute(kReadOnlyHostRegisterSupported, 0) != 0;
  return info;
}

GpuList list_gpus() {
  const CudaDriverSearch& search = find_cuda_driver();
  if (!search.driver) return {{}, search.reason};
  GpuList list;
  try {
    int count = 0;
    search.driver->check(search.driver->cuDeviceGetCount(&count), "cuDeviceGetCount", "GPU");
    for (int i = 0; i < count; ++i) list.gpus.push_back(read_gpu(*search.driver, i));
  } catch (const Error& error) {
    return {{}, error.what()};
  }
  if (list.gpus.empty()) list.reason = "the NVIDIA driver sees no GPU";
  return list;
}

PeerLink peer_link(const CudaDriver& driver, int from_idx, int to_idx) {
  const auto handle = [&](int device_idx) {
    CUdevice device = 0;
    driver.check(driver.cuDeviceGet(&device, device_idx), "cuDeviceGet", fmt::format("GPU {}", device_idx));
    return device;
  };
  const CUdevice from = handle(from_idx), to = handle(to_idx);
  const auto attribute = [&](PeerAttribute which) {
    int value = 0;
    driver.check(driver.cuDeviceGetP2PAttribute(&value, which, from, to), "cuDeviceGetP2PAttribute",
                 fmt::format("GPU {} to {}", from_idx, to_idx));
    return value;
  };
  int has_access = 0;
  driver.check(driver.cuDeviceCanAccessPeer(&has_access, from, to), "cuDeviceCanAccessPeer",
               fmt::format("GPU {} to {}", from_idx, to_idx));
  return {.has_access = has_access != 0,
          .has_atomics = attribute(kNativeAtomicSupported) != 0,
          .performance_rank = attribute(kPerformanceRank)};
}

DeviceInfo device_info(const GpuInfo& gpu) {
  DeviceInfo device;
  device.name = gpu.name;
  device.memory_bytes = static_cast<uint64_t>(gpu.memory_bytes);
  device.l2_bytes = static_cast<uint64_t>(gpu.l2_bytes);
  device.gpu = gpu;
  return device;
}

DeviceInfo device_info(const Arch& arch) {
  GpuInfo gpu;
  gpu.name = arch.name;
  gpu.major = arch.major;
  gpu.minor = arch.minor;
  gpu.arch = &arch;
  gpu.block_shared_bytes = arch.block_shared_bytes;
  gpu.sm_shared_bytes = arch.sm_shared_bytes;
  gpu.sm_registers = arch.sm_registers;
  gpu.sm_threads = arch.sm_threads;
  return device_info(gpu);
}

}  // namespace sinter
