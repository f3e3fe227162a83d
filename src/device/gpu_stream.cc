#include "device/gpu_stream.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sinter {

using namespace cuda_abi;

namespace {

CUdeviceptr address_of(const void* data) { return reinterpret_cast<CUdeviceptr>(data); }

[[noreturn]] void refuse(const GpuFunction& function, std::string expected, std::string found) {
  throw Error(ErrorKind::kInternal,
              {.where = fmt::format("launch of {} on {}", function.name(), function.device().label()),
               .expected = std::move(expected),
               .found = std::move(found),
               .mend = "this is a bug in sinter, please report it"});
}

void check_launch(const GpuFunction& function, const LaunchShape& shape, std::span<const uint32_t> bytes) {
  if (!std::ranges::equal(bytes, function.parameter_bytes())) [[unlikely]] {
    const auto list = [](std::span<const uint32_t> sizes) {
      std::string text;
      for (const uint32_t size : sizes) text += fmt::format("{}{}", text.empty() ? "" : " ", size);
      return fmt::format("{} parameters of bytes [{}]", sizes.size(), text);
    };
    refuse(function, list(function.parameter_bytes()), list(bytes));
  }
  if (shape.block.count() > static_cast<uint64_t>(function.max_threads())) [[unlikely]]
    refuse(function, fmt::format("at most {} threads a block", function.max_threads()),
           fmt::format("{}", shape.block.count()));
  if (shape.shared_bytes > function.max_dynamic_shared_bytes()) [[unlikely]]
    refuse(function, fmt::format("at most {} bytes of shared memory", function.max_dynamic_shared_bytes()),
           fmt::format("{}", shape.shared_bytes));
}

}  // namespace

GpuEvent::GpuEvent(const GpuDevice& device, Kind kind) : device_(device) {
  const CurrentContext current(device_);
  const unsigned flags = kind == Kind::kTimed ? 0 : kEventDisableTiming;
  device_.driver().check(device_.driver().cuEventCreate(&handle_, flags), "cuEventCreate", device_.label());
}

GpuEvent::~GpuEvent() {
  if (handle_ == nullptr) return;
  const CurrentContext current(device_);
  device_.driver().cuEventDestroy(handle_);
}

GpuEvent::GpuEvent(GpuEvent&& other) noexcept
    : device_(std::move(other.device_)), handle_(std::exchange(other.handle_, nullptr)) {}

GpuEvent& GpuEvent::operator=(GpuEvent&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

bool GpuEvent::is_reached() const {
  const CurrentContext current(device_);
  const CUresult result = device_.driver().cuEventQuery(handle_);
  if (result == kNotReady) return false;
  device_.driver().check(result, "cuEventQuery", device_.label());
  return true;
}

void GpuEvent::synchronize() const {
  const CurrentContext current(device_);
  ++device_.context().num_synchronizations;
  device_.driver().check(device_.driver().cuEventSynchronize(handle_), "cuEventSynchronize", device_.label());
}

double GpuEvent::us_since(const GpuEvent& begin) const {
  const CurrentContext current(device_);
  float milliseconds = 0;
  device_.driver().check(device_.driver().cuEventElapsedTime(&milliseconds, begin.handle_, handle_),
                         "cuEventElapsedTime", device_.label());
  return 1e3 * static_cast<double>(milliseconds);
}

GpuStream::GpuStream(const GpuDevice& device, Priority priority) : device_(device) {
  const CurrentContext current(device_);
  const CudaDriver& driver = device_.driver();
  int least = 0, greatest = 0;  // the greatest priority is the smallest number
  driver.check(driver.cuCtxGetStreamPriorityRange(&least, &greatest), "cuCtxGetStreamPriorityRange",
               device_.label());
  driver.check(driver.cuStreamCreateWithPriority(&handle_, kStreamNonBlocking,
                                                 priority == Priority::kHigh ? greatest : least),
               "cuStreamCreateWithPriority", device_.label());
}

GpuStream::~GpuStream() {
  if (handle_ == nullptr) return;
  const CurrentContext current(device_);
  device_.driver().cuStreamDestroy(handle_);
}

GpuStream::GpuStream(GpuStream&& other) noexcept
    : device_(std::move(other.device_)), handle_(std::exchange(other.handle_, nullptr)) {}

GpuStream& GpuStream::operator=(GpuStream&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

void GpuStream::launch_with(const GpuFunction& function, const LaunchShape& shape, std::span<void*> addresses,
                            std::span<const uint32_t> bytes) {
  check_launch(function, shape, bytes);
  const internal::LaunchRequest request(function, shape, handle_);
  const CurrentContext current(device_);
  const CudaDriver& driver = device_.driver();
  const CUresult result =
      driver.cuLaunchKernelEx(&request.config, function.handle(), addresses.data(), nullptr);
  if (result != kSuccess) [[unlikely]]
    driver.raise(result, "cuLaunchKernelEx", fmt::format("{}: {}", device_.label(), function.name()));
  ++device_.context().num_kernel_launches;
}

void GpuStream::copy(void* to, const void* from, size_t size_bytes) {
  if (size_bytes == 0) return;
  const CurrentContext current(device_);
  const CudaDriver& driver = device_.driver();
  driver.check(driver.cuMemcpyAsync(address_of(to), address_of(from), size_bytes, handle_), "cuMemcpyAsync",
               device_.label());
  ++device_.context().num_copies;
}

void GpuStream::fill(void* to, uint8_t value, size_t size_bytes) {
  if (size_bytes == 0) return;
  const CurrentContext current(device_);
  const CudaDriver& driver = device_.driver();
  driver.check(driver.cuMemsetD8Async(address_of(to), value, size_bytes, handle_), "cuMemsetD8Async",
               device_.label());
  ++device_.context().num_copies;
}

void GpuStream::record(GpuEvent& event) {
  const CurrentContext current(device_);
  const CudaDriver& driver = device_.driver();
  driver.check(driver.cuEventRecord(event.handle(), handle_), "cuEventRecord", device_.label());
}

void GpuStream::record_in_graph(GpuEvent& event) {
  if (!is_capturing()) return record(event);
  const CurrentContext current(device_);
  const CudaDriver& driver = device_.driver();
  driver.check(driver.cuEventRecordWithFlags(event.handle(), handle_, kEventRecordExternal),
               "cuEventRecordWithFlags", device_.label());
}

void GpuStream::wait_for(const GpuEvent& event) {
  const CurrentContext current(device_);
  const CudaDriver& driver = device_.driver();
  driver.check(driver.cuStreamWaitEvent(handle_, event.handle(), 0), "cuStreamWaitEvent", device_.label());
}

bool GpuStream::is_idle() const {
  const CurrentContext current(device_);
  const CUresult result = device_.driver().cuStreamQuery(handle_);
  if (result == kNotReady) return false;
  device_.driver().check(result, "cuStreamQuery", device_.label());
  return true;
}

bool GpuStream::is_capturing() const {
  const CurrentContext current(device_);
  int status = 0;
  device_.driver().check(device_.driver().cuStreamIsCapturing(handle_, &status), "cuStreamIsCapturing",
                         device_.label());
  return status == kCaptureStatusActive;
}

void GpuStream::synchronize() const {
  const CurrentContext current(device_);
  ++device_.context().num_synchronizations;
  device_.driver().check(device_.driver().cuStreamSynchronize(handle_), "cuStreamSynchronize",
                         device_.label());
}

}  // namespace sinter
