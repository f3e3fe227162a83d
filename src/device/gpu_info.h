// The NVIDIA GPUs of this machine: facts, read without making a context on any of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/arch.h"

namespace sinter {

struct CudaDriver;

struct GpuInfo {
  int device_idx = 0;  // in the driver's order, after CUDA_VISIBLE_DEVICES
  std::string name;    // "NVIDIA H200"
  int major = 0, minor = 0;
  const Arch* arch = nullptr;  // null: no row of the table, kernels cannot be compiled for it
  int cuda_version = 0;        // the newest that the driver runs: 13000 is 13.0
  std::string uuid;            // "GPU-2f0b...", as nvidia-smi -L writes it
  std::string pci_bus_id;      // "0000:17:00.0"; tells NVML which GPU is meant
  int numa_node = -1;          // of the host; -1: unknown

  int num_sms = 0;
  int64_t memory_bytes = 0;
  int64_t l2_bytes = 0;
  int64_t block_shared_bytes = 0, sm_shared_bytes = 0;  // as in Arch, as this GPU says
  int64_t sm_registers = 0;
  int sm_threads = 0;
  int sm_clock_mhz = 0, memory_clock_mhz = 0;  // highest; 0 where the driver does not tell
  int memory_bus_bits = 0;
  bool shares_host_memory = false;          // one memory for CPU and GPU: DGX Spark, Jetson
  bool reads_pageable_memory = false;       // kernels may read any host pointer
  bool registers_read_only_memory = false;  // a read-only file map can be pinned

  // Empty when Sinter can run on it; else why not: "compute capability 7.5 is older than 8.0".
  std::string unsupported_reason() const;
};

struct GpuList {
  std::vector<GpuInfo> gpus;
  std::string reason;  // why `gpus` is empty: "libcuda.so.1 not found: no NVIDIA driver is installed"
};

// This machine's, read anew at each call. Throws nothing.
GpuList list_gpus();

// Throws Error of the failing call. 0 <= device_idx < the driver's count.
GpuInfo read_gpu(const CudaDriver& driver, int device_idx);

// How one GPU reaches the memory of another.
struct PeerLink {
  bool has_access = false;
  bool has_atomics = false;
  int performance_rank = 0;  // of this machine's links; 0 is the fastest
};
PeerLink peer_link(const CudaDriver& driver, int from_idx, int to_idx);

}  // namespace sinter
