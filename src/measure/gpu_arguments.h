// A copy of Arguments in a GPU's memory: kernels work on the copy, checks on what is read back.
#pragma once

#include <vector>

#include "kernels/gpu_launch.h"
#include "measure/arguments.h"

namespace sinter::measure {

class GpuArguments {
 public:
  // Copies all tensors of `arguments`; what lies on the host for every kernel (ops::SampleArgs) stays there.
  // `arguments` and `launch` outlive it. Throws Error(kMemory) when the GPU has not enough memory.
  GpuArguments(Arguments& arguments, const GpuDevice& device, kernels::GpuLaunch& launch);
  GpuArguments(const GpuArguments&) = delete;
  GpuArguments& operator=(const GpuArguments&) = delete;

  // As Arguments::args(), with every tensor in the GPU's memory.
  const ops::Args& args() const { return args_; }
  // As Arguments::pack_for(), of a kernel for GPUs. Waits.
  void pack_for(const kernels::KernelInfo& kernel, ThreadPool& pool);

  // Resets the outputs of `arguments` and copies them here, in the stream.
  void reset_outputs();
  // Waits for the stream, and copies the outputs with the memory around them into those of `arguments`.
  void read_outputs();
  // Inputs are as they were, and nothing was written between the tensors. Waits, and reads all of it.
  bool are_inputs_intact();

 private:
  struct Region {
    Buffer memory;              // of the copy, a guard of 0xff behind it
    std::span<std::byte> host;  // what it is a copy of
    bool is_output = false;
  };
  Region& region_of(const TensorView& tensor);

  Arguments& arguments_;
  GpuDevice device_;
  kernels::GpuLaunch& launch_;
  std::vector<Region> regions_;
  ops::PackedWeights weights_;
  ops::Args args_;
};

}  // namespace sinter::measure
