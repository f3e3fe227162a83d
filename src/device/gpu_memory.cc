#include "device/gpu_memory.h"

#include "base/error.h"

namespace sinter {

using namespace cuda_abi;

namespace {

std::string gib(int64_t bytes) { return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30)); }

}  // namespace

Buffer device_buffer(const GpuDevice& device, size_t size_bytes) {
  if (size_bytes == 0) return {};
  const CudaDriver& driver = device.driver();
  const CurrentContext current(device);
  CUdeviceptr address = 0;
  const CUresult result = driver.cuMemAlloc(&address, size_bytes);
  if (result == kOutOfMemory) {
    const GpuMemoryUse use = device.memory_use();
    throw Error(ErrorKind::kMemory,
                {.where = device.label(),
                 .expected = gib(static_cast<int64_t>(size_bytes)) + " of memory",
                 .found = fmt::format("{} free of {}", gib(use.free_bytes), gib(use.total_bytes)),
                 .mend = "a shorter context or a smaller batch takes less"});
  }
  driver.check(result, "cuMemAlloc", device.label());
  ++device.context().num_allocations;
  device.context().allocated_bytes += static_cast<int64_t>(size_bytes);
  return Buffer(reinterpret_cast<std::byte*>(address), size_bytes, [device, size_bytes](std::byte* data) {
    const CurrentContext current_again(device);
    device.driver().cuMemFree(reinterpret_cast<CUdeviceptr>(data));
    device.context().allocated_bytes -= static_cast<int64_t>(size_bytes);
  });
}

Buffer pinned_buffer(const GpuDevice& device, size_t size_bytes) {
  if (size_bytes == 0) return {};
  const CurrentContext current(device);
  void* address = nullptr;
  const CUresult result = device.driver().cuMemHostAlloc(&address, size_bytes, kHostAllocPortable);
  if (result == kOutOfMemory)
    throw Error(ErrorKind::kMemory, {.where = "pinned host memory",
                                     .expected = gib(static_cast<int64_t>(size_bytes)),
                                     .found = "not enough memory",
                                     .mend = "see ulimit -l and the memory limit of the container"});
  device.driver().check(result, "cuMemHostAlloc", device.label());
  ++device.context().num_allocations;
  return Buffer(static_cast<std::byte*>(address), size_bytes, [device](std::byte* data) {
    const CurrentContext current_again(device);
    device.driver().cuMemFreeHost(data);
  });
}

HostPin::HostPin(const GpuDevice& device, std::span<const std::byte> memory, Access access)
    : device_(device), data_(const_cast<std::byte*>(memory.data())) {
  const bool is_read_only = access == Access::kReadOnly;
  if (is_read_only && !device.info().registers_read_only_memory)
    throw Error(ErrorKind::kUnsupported, {.where = device.label(),
                                          .expected = {},
                                          .found = "cannot pin read-only memory",
                                          .mend = "copy through a pinned buffer"});
  const CurrentContext current(device);
  const unsigned flags = kHostRegisterPortable | (is_read_only ? kHostRegisterReadOnly : 0);
  device.driver().check(device.driver().cuMemHostRegister(data_, memory.size(), flags), "cuMemHostRegister",
                        device.label());
}

HostPin::~HostPin() {
  const CurrentContext current(device_);
  device_.driver().cuMemHostUnregister(data_);
}

}  // namespace sinter
