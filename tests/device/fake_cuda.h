// A driver without a GPU, loaded as a library by the tests: device memory is host memory, work is done at
// once, and what was asked for is written down here. It shows what our half of the interface does, not what a
// GPU does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/cuda_abi.h"

namespace sinter::testing {

struct FakeLaunch {
  cuda_abi::CUlaunchConfig config;
  std::vector<cuda_abi::CUlaunchAttribute> attributes;
  uint64_t first;  // the kernel's parameters: 8 bytes and 4 bytes
  uint32_t second;
};

struct FakeCuda {
  // Set by tests before the driver is opened.
  int version = 13000;
  cuda_abi::CUresult init_result = cuda_abi::kSuccess;
  std::string missing;  // a function that this driver lacks
  int major = 9, minor = 0, num_devices = 2;
  uint64_t memory_bytes = uint64_t{1} << 20;

  // What is alive; all 0 at the end of a test.
  int num_contexts = 0, num_streams = 0, num_events = 0, num_modules = 0, num_graphs = 0, num_buffers = 0,
      num_pins = 0;
  int depth = 0;  // of the context stack
  uint64_t used_bytes = 0;
  // What happened.
  int calls_without_context = 0;
  int capturing = 0;
  std::vector<int> captured;  // node types
  std::vector<FakeLaunch> launches;
  cuda_abi::CUresult launch_result = cuda_abi::kSuccess;
  cuda_abi::CUresult peer_result = cuda_abi::kSuccess;
};

// The library's only symbol beside the driver's: its state.
using FakeCudaState = FakeCuda* (*)();

}  // namespace sinter::testing
