#include "device/gpu_device.h"

#include "base/error.h"

namespace sinter {

using namespace cuda_abi;

GpuContext::GpuContext(const CudaDriver& driver_of, int device_idx)
    : driver(driver_of),
      info(read_gpu(driver_of, device_idx)),
      label(fmt::format("GPU {} ({})", device_idx, info.name)) {
  if (const std::string reason = info.unsupported_reason(); !reason.empty())
    throw Error(ErrorKind::kUnsupported,
                {.where = label, .expected = {}, .found = reason, .mend = "the CPU works without it"});
  driver.check(driver.cuDeviceGet(&device, device_idx), "cuDeviceGet", label);
  driver.check(driver.cuDevicePrimaryCtxRetain(&handle, device), "cuDevicePrimaryCtxRetain", label);
}

GpuContext::~GpuContext() { driver.cuDevicePrimaryCtxRelease(device); }

GpuDevice::GpuDevice(const CudaDriver& driver, int device_idx)
    : context_(std::make_shared<GpuContext>(driver, device_idx)) {}

GpuDevice GpuDevice::open(int device_idx) {
  const CudaDriver& driver = cuda_driver();
  int count = 0;
  driver.check(driver.cuDeviceGetCount(&count), "cuDeviceGetCount", "GPU");
  if (device_idx < 0 || device_idx >= count)
    throw Error(ErrorKind::kUsage,
                {.where = fmt::format("GPU {}", device_idx),
                 .expected = count == 1 ? "0, the only GPU" : fmt::format("0 to {}", count - 1),
                 .found = fmt::format("{}", device_idx),
                 .mend = "CUDA_VISIBLE_DEVICES hides GPUs and renumbers the rest"});
  return GpuDevice(driver, device_idx);
}

GpuMemoryUse GpuDevice::memory_use() const {
  const CurrentContext current(*this);
  size_t free_bytes = 0, total_bytes = 0;
  driver().check(driver().cuMemGetInfo(&free_bytes, &total_bytes), "cuMemGetInfo", label());
  return {static_cast<int64_t>(free_bytes), static_cast<int64_t>(total_bytes)};
}

GpuCounters GpuDevice::counters() const {
  return {.num_allocations = context_->num_allocations,
          .num_synchronizations = context_->num_synchronizations,
          .num_kernel_launches = context_->num_kernel_launches,
          .num_graph_launches = context_->num_graph_launches,
          .num_copies = context_->num_copies,
          .allocated_bytes = context_->allocated_bytes};
}

void GpuDevice::synchronize() const {
  const CurrentContext current(*this);
  ++context_->num_synchronizations;
  driver().check(driver().cuCtxSynchronize(), "cuCtxSynchronize", label());
}

void GpuDevice::enable_peer(const GpuDevice& peer) const {
  const CurrentContext current(*this);
  const CUresult result = driver().cuCtxEnablePeerAccess(peer.context_->handle, 0);
  if (result == kPeerAccessAlreadyEnabled) return;
  driver().check(result, "cuCtxEnablePeerAccess", fmt::format("{} to {}", label(), peer.label()));
}

CurrentContext::CurrentContext(const GpuDevice& device)
    : driver_(device.driver()), pushed_(driver_.cuCtxPushCurrent(device.context().handle) == kSuccess) {}

CurrentContext::~CurrentContext() {
  CUcontext popped = nullptr;
  if (pushed_) driver_.cuCtxPopCurrent(&popped);
}

}  // namespace sinter
