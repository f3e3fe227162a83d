// A recorded sequence of launches and copies that is launched as one: how a decode step runs.
#pragma once

#include <optional>
#include <utility>

#include "device/gpu_stream.h"

namespace sinter {

// What a graph consists of. A decode step has no `num_allocations` and no `num_host_calls`.
struct GraphNodes {
  int num_kernels = 0;
  int num_copies = 0;  // and fills
  int num_events = 0;
  int num_allocations = 0;  // and releases
  int num_host_calls = 0;
  int num_others = 0;  // nodes that only join
};

class GpuGraph {
 public:
  // Calls work() while what `stream` and the streams that it makes wait are given is recorded and not run.
  // Addresses and parameters are kept as they are then: what changes from launch to launch lies in device
  // memory. In work() this thread may neither wait for the GPU nor take memory of it; other threads may.
  // Throws what work() throws, and Error for a capture that broke; the stream works again either way.
  template <typename Work>
  static GpuGraph capture(GpuStream& stream, Work&& work) {
    Recording recording(stream);
    std::forward<Work>(work)();
    return recording.finish();
  }

  GpuGraph() = default;  // nothing to launch
  ~GpuGraph();
  GpuGraph(GpuGraph&& other) noexcept;
  GpuGraph& operator=(GpuGraph&& other) noexcept;

  bool is_empty() const { return handle_ == nullptr; }
  const GraphNodes& nodes() const { return nodes_; }
  // Does ahead what the first launch would do.
  void upload(GpuStream& stream) const;
  // Two launches of one graph run one after the other, on whatever streams.
  void launch(GpuStream& stream) const;

 private:
  class Recording {
   public:
    explicit Recording(GpuStream& stream);
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
    GpuGraph finish();

   private:
    GpuStream& stream_;
    bool open_ = true;
  };

  std::optional<GpuDevice> device_;  // none when empty
  cuda_abi::CUgraphExec handle_ = nullptr;
  GraphNodes nodes_;
};

}  // namespace sinter
