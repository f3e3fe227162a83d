// What the host halves of the portable GPU kernels share: names for device code, checks, launches.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>

#include "base/error.h"
#include "kernels/gpu_launch.h"
#include "kernels/kernel.h"

namespace sinter::kernels::cuda {

// The C++ type of device code.
inline std::string element_of(DType dtype) {
  switch (dtype) {
    case DType::kF32: return "float";
    case DType::kF16: return "F16";
    case DType::kBF16: return "Bf16";
    default: SINTER_CHECK(false, "device code has no element type {}", name(dtype));
  }
}

inline bool is_float_or_bf16(DType dtype) { return dtype == DType::kF32 || dtype == DType::kBF16; }

inline uint32_t blocks(int64_t count, int64_t size) {
  return static_cast<uint32_t>((count + size - 1) / size);
}

// Numbers are 32-bit in device code; supports() has seen to it that they fit.
inline int narrow(int64_t number) {
  SINTER_CHECK(number >= 0 && number <= std::numeric_limits<int32_t>::max(), "{} does not fit 32 bits",
               number);
  return static_cast<int>(number);
}

// For kernels without requirements of their own: every number of the problem in 31 bits.
inline Support fits_32_bits(std::initializer_list<std::pair<const char*, int64_t>> numbers) {
  for (const auto& [number_name, number] : numbers)
    if (number > std::numeric_limits<int32_t>::max())
      return Support::no(fmt::format("needs {} below 2^31, it is {}", number_name, number));
  return Support::yes();
}

// Blocks along y and z of a grid.
inline Support fits_grid(const char* what, int64_t num_blocks) {
  constexpr int64_t kMost = 65535;
  if (num_blocks > kMost)
    return Support::no(fmt::format("needs at most {} blocks along {}, here {}", kMost, what, num_blocks));
  return Support::yes();
}

inline Support fits_shared(int64_t needed_bytes, const DeviceInfo& device) {
  const int64_t most_bytes = device.gpu->block_shared_bytes;
  if (needed_bytes > most_bytes)
    return Support::no(
        fmt::format("needs {} bytes of shared memory a block, {} are there", needed_bytes, most_bytes));
  return Support::yes();
}

// The first reason against, or yes.
inline Support all_of(std::initializer_list<Support> supports) {
  for (const Support& support : supports)
    if (!support) return support;
  return Support::yes();
}

// Every kernel begins with begin_kernel(), so it may be set up while the one before it still runs.
inline LaunchShape shape_of(Dim3 grid, int num_threads, int64_t shared_bytes = 0) {
  return {.grid = grid,
          .block = {static_cast<uint32_t>(num_threads)},
          .shared_bytes = static_cast<uint32_t>(shared_bytes),
          .is_dependent = true};
}

// Kernel `name` of `program`, in the stream.
template <typename... Parameters>
void launch(LaunchContext& context, const GpuProgram& program, const std::string& name,
            const LaunchShape& shape, const Parameters&... parameters) {
  context.gpu->stream.launch(context.gpu->programs.function(program, name), shape, parameters...);
}

// A pointer parameter; null for an empty view.
inline std::byte* memory(const TensorView& view) { return static_cast<std::byte*>(view.data()); }

// Threads of kernels that walk along a row.
inline int row_threads(int64_t width) {
  const int64_t threads = (width + 31) / 32 * 32;
  return static_cast<int>(threads < 256 ? threads : 256);
}

}  // namespace sinter::kernels::cuda
