// A GPU in use: its primary context, shared with everything else in the process that uses the CUDA runtime.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "device/cuda_driver.h"
#include "device/gpu_info.h"

namespace sinter {

// Since the device was opened. A decode step adds launches and nothing to the first two.
struct GpuCounters {
  uint64_t num_allocations = 0;       // device and pinned host memory
  uint64_t num_synchronizations = 0;  // waits of the host, queries excluded
  uint64_t num_kernel_launches = 0;   // recorded ones included
  uint64_t num_graph_launches = 0;
  uint64_t num_copies = 0;      // and fills
  int64_t allocated_bytes = 0;  // at present, of device memory
};

struct GpuMemoryUse {
  int64_t free_bytes = 0, total_bytes = 0;  // of the whole GPU, other processes included
};

// What the copies of a GpuDevice share.
struct GpuContext {
  GpuContext(const CudaDriver& driver_of, int device_idx);
  ~GpuContext();
  GpuContext(const GpuContext&) = delete;
  GpuContext& operator=(const GpuContext&) = delete;

  const CudaDriver& driver;
  GpuInfo info;
  std::string label;
  cuda_abi::CUdevice device = 0;
  cuda_abi::CUcontext handle = nullptr;
  std::atomic<uint64_t> num_allocations{0}, num_synchronizations{0}, num_kernel_launches{0},
      num_graph_launches{0}, num_copies{0};
  std::atomic<int64_t> allocated_bytes{0};
};

// A handle; copies share one context, which lives as long as the last of them. Streams, buffers and whatever
// else is made on the device hold one. Any thread may use it: each call sets the context that it needs and
// puts the caller's back.
class GpuDevice {
 public:
  // Of this machine's driver. Throws Error(kUnsupported) with the reason where there is no driver, no such
  // GPU, or one that Sinter cannot use.
  static GpuDevice open(int device_idx);
  GpuDevice(const CudaDriver& driver, int device_idx);  // `driver` outlives everything made from it

  const GpuInfo& info() const { return context_->info; }
  const CudaDriver& driver() const { return context_->driver; }
  const std::string& label() const { return context_->label; }  // "GPU 0 (NVIDIA H200)", for messages
  GpuMemoryUse memory_use() const;
  GpuCounters counters() const;

  // Waits for all work of all streams. Throws Error for what failed since the last wait.
  void synchronize() const;
  // Lets kernels on this GPU read and write the memory of `peer`; done twice does no harm.
  void enable_peer(const GpuDevice& peer) const;

  GpuContext& context() const { return *context_; }

 private:
  std::shared_ptr<GpuContext> context_;
};

// Makes the device's context the thread's for a scope. Never fails: the calls in the scope do.
class CurrentContext {
 public:
  explicit CurrentContext(const GpuDevice& device);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const CudaDriver& driver_;
  bool pushed_;
};

}  // namespace sinter
