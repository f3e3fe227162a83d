// Memory that a GPU can reach, as Buffers and pins. All of it is taken before the first request: nothing here
// is called on the way of one.
#pragma once

#include <cstddef>
#include <span>

#include "device/gpu_device.h"
#include "tensor/buffer.h"

namespace sinter {

// Memory of the GPU, aligned to 256 bytes, not zeroed; empty for 0 bytes. Releasing waits for the GPU's work.
// Throws Error(kMemory) with what was asked for and what is free.
Buffer device_buffer(const GpuDevice& device, size_t size_bytes);

// Host memory that copies from and to any GPU overlap with, and kernels of all GPUs can read and write at the
// same address; not zeroed. Slow to take: reuse it.
Buffer pinned_buffer(const GpuDevice& device, size_t size_bytes);

// Pins host memory of somebody else for its own lifetime, so that copies from it overlap: the pages are
// locked, and a mapped file is read in whole. Throws Error(kUnsupported) for read-only memory where the GPU
// cannot do that.
class HostPin {
 public:
  enum class Access { kReadWrite, kReadOnly };
  HostPin(const GpuDevice& device, std::span<const std::byte> memory, Access access);
  ~HostPin();
  HostPin(const HostPin&) = delete;
  HostPin& operator=(const HostPin&) = delete;

 private:
  GpuDevice device_;
  void* data_;
};

}  // namespace sinter
