// Work of a GPU in order, and marks in it. Nothing here allocates or waits unless its name says so, and all
// but the waits can be recorded into a graph.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "device/gpu_device.h"
#include "device/gpu_module.h"

namespace sinter {

// A point in a stream's work: for other streams to wait for, and to measure time between two of them.
class GpuEvent {
 public:
  enum class Kind { kTimed, kUntimed };  // an untimed one costs less
  explicit GpuEvent(const GpuDevice& device, Kind kind = Kind::kTimed);
  ~GpuEvent();
  GpuEvent(GpuEvent&& other) noexcept;
  GpuEvent& operator=(GpuEvent&& other) noexcept;

  bool is_reached() const;  // also when never recorded
  void synchronize() const;
  // From `begin` to this event; both timed and reached. Resolution about 0.5 us.
  double us_since(const GpuEvent& begin) const;
  cuda_abi::CUevent handle() const { return handle_; }

 private:
  GpuDevice device_;
  cuda_abi::CUevent handle_ = nullptr;
};

class GpuStream {
 public:
  enum class Priority { kNormal, kHigh };
  // Does not wait for the legacy default stream, nor that one for it.
  explicit GpuStream(const GpuDevice& device, Priority priority = Priority::kNormal);
  ~GpuStream();
  GpuStream(GpuStream&& other) noexcept;
  GpuStream& operator=(GpuStream&& other) noexcept;

  // The kernel's parameters in their order, each of the very type that the kernel declares. Throws
  // Error(kInternal) when their number or sizes are not the kernel's, or a block has more threads or shared
  // memory than it may.
  template <typename... Parameters>
  void launch(const GpuFunction& function, const LaunchShape& shape, const Parameters&... parameters) {
    static_assert((std::is_trivially_copyable_v<Parameters> && ...));
    static constexpr uint32_t kBytes[] = {sizeof(Parameters)..., 0};
    void* addresses[] = {const_cast<void*>(static_cast<const void*>(&parameters))..., nullptr};
    launch_with(function, shape, {addresses, sizeof...(Parameters)}, {kBytes, sizeof...(Parameters)});
  }
  // The same with addresses and sizes of the parameters, for those who have them in a list.
  void launch_with(const GpuFunction& function, const LaunchShape& shape, std::span<void*> addresses,
                   std::span<const uint32_t> bytes);

  // Between any two of device, pinned and ordinary host memory. Ordinary host memory makes it wait for the
  // copy.
  void copy(void* to, const void* from, size_t size_bytes);
  void fill(void* to, uint8_t value, size_t size_bytes);

  void record(GpuEvent& event);
  // As `record`; inside a capture the event becomes a node, which each launch of the graph reaches anew: for
  // times within a graph. A plain record only orders what is captured.
  void record_in_graph(GpuEvent& event);
  void wait_for(const GpuEvent& event);  // the stream waits, not the caller

  bool is_idle() const;
  bool is_capturing() const;
  void synchronize() const;  // throws Error for what failed since the last wait
  cuda_abi::CUstream handle() const { return handle_; }
  const GpuDevice& device() const { return device_; }

 private:
  GpuDevice device_;
  cuda_abi::CUstream handle_ = nullptr;
};

}  // namespace sinter
