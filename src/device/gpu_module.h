// Compiled device code on a GPU, and what a launch says beside the kernel's parameters.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/gpu_device.h"

namespace sinter {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;

  uint64_t count() const { return uint64_t{x} * y * z; }
  bool operator==(const Dim3&) const = default;
};

struct LaunchShape {
  Dim3 grid{};                // blocks
  Dim3 block{};               // threads
  uint32_t shared_bytes = 0;  // dynamic, for each block
  Dim3 cluster{};             // blocks of a cluster; 1: none
  // All blocks run at the same time, or the launch fails: for kernels whose blocks wait for each other.
  bool is_cooperative = false;
  // Programmatic dependent launch: starts before the kernel in front of it has ended, and waits for its
  // results by griddepcontrol.wait. Where the architecture has no such launch this is an ordinary one, as the
  // kernel's own wait is compiled out there by the same row of the table.
  bool is_dependent = false;
};

// A kernel of a loaded module, with the limits that a launch is checked against. Valid while its module
// lives.
class GpuFunction {
 public:
  const std::string& name() const { return name_; }
  int num_registers() const { return num_registers_; }  // of a thread
  int max_threads() const { return max_threads_; }      // of a block, with these registers
  int64_t local_bytes() const { return local_bytes_; }  // of a thread; more than 0: spills or arrays
  int64_t static_shared_bytes() const { return static_shared_bytes_; }
  int64_t max_dynamic_shared_bytes() const { return max_dynamic_shared_bytes_; }
  std::span<const uint32_t> parameter_bytes() const { return parameter_bytes_; }

  // Blocks of this shape that one multiprocessor holds at a time.
  int blocks_per_sm(int block_threads, int64_t shared_bytes) const;
  // Clusters of this shape that the GPU holds at a time.
  int max_clusters(const LaunchShape& shape) const;
  cuda_abi::CUfunction handle() const { return handle_; }
  const GpuDevice& device() const { return device_; }

 private:
  friend class GpuModule;
  GpuFunction(GpuDevice device, cuda_abi::CUfunction handle, std::string name);

  GpuDevice device_;
  cuda_abi::CUfunction handle_;
  std::string name_;
  int num_registers_ = 0, max_threads_ = 0;
  int64_t local_bytes_ = 0, static_shared_bytes_ = 0, max_dynamic_shared_bytes_ = 0;
  std::vector<uint32_t> parameter_bytes_;
};

class GpuModule {
 public:
  // `image` is a cubin, or PTX text with its final zero; the driver copies it. `name` is for messages. Throws
  // Error(kUnsupported) for one of another architecture or of a newer compiler than the driver reads.
  GpuModule(const GpuDevice& device, std::span<const std::byte> image, std::string name);
  ~GpuModule();
  GpuModule(GpuModule&& other) noexcept;
  GpuModule& operator=(GpuModule&& other) noexcept;

  // Loads the kernel now, so that no first launch is slow or breaks a capture, and lets it have all the
  // shared memory that a block may have. Throws Error when the module has none of that name.
  GpuFunction function(const std::string& name) const;
  // Address and bytes of a __device__ or __constant__ variable.
  std::span<std::byte> variable(const std::string& name) const;

 private:
  GpuDevice device_;
  std::string name_;
  cuda_abi::CUmodule handle_ = nullptr;
};

namespace internal {

// Attributes of a launch on the stack, in the driver's form.
struct LaunchRequest {
  LaunchRequest(const GpuFunction& function, const LaunchShape& shape, cuda_abi::CUstream stream);
  LaunchRequest(const LaunchRequest&) = delete;
  LaunchRequest& operator=(const LaunchRequest&) = delete;

  cuda_abi::CUlaunchAttribute attributes[3];
  cuda_abi::CUlaunchConfig config;
};

}  // namespace internal
}  // namespace sinter
