#include "device/gpu_graph.h"

#include <vector>

#include "base/error.h"

namespace sinter {

using namespace cuda_abi;

namespace {

GraphNodes count_nodes(const GpuDevice& device, CUgraph graph) {
  const CudaDriver& driver = device.driver();
  size_t num_nodes = 0;
  driver.check(driver.cuGraphGetNodes(graph, nullptr, &num_nodes), "cuGraphGetNodes", device.label());
  std::vector<CUgraphNode> handles(num_nodes);
  if (num_nodes > 0)
    driver.check(driver.cuGraphGetNodes(graph, handles.data(), &num_nodes), "cuGraphGetNodes",
                 device.label());
  GraphNodes nodes;
  for (const CUgraphNode handle : handles) {
    int type = 0;
    driver.check(driver.cuGraphNodeGetType(handle, &type), "cuGraphNodeGetType", device.label());
    switch (type) {
      case kKernelNode: ++nodes.num_kernels; break;
      case kCopyNode:
      case kFillNode: ++nodes.num_copies; break;
      case kEventWaitNode:
      case kEventRecordNode: ++nodes.num_events; break;
      case kAllocationNode:
      case kFreeNode: ++nodes.num_allocations; break;
      case kHostNode: ++nodes.num_host_calls; break;
      default: ++nodes.num_others; break;
    }
  }
  return nodes;
}

}  // namespace

GpuGraph::Recording::Recording(GpuStream& stream) : stream_(stream) {
  const CurrentContext current(stream.device());
  const CudaDriver& driver = stream.device().driver();
  driver.check(driver.cuStreamBeginCapture(stream.handle(), kCaptureThreadLocal), "cuStreamBeginCapture",
               stream.device().label());
}

// work() threw: whatever was recorded is dropped.
GpuGraph::Recording::~Recording() {
  if (!open_) return;
  const CurrentContext current(stream_.device());
  const CudaDriver& driver = stream_.device().driver();
  CUgraph graph = nullptr;
  driver.cuStreamEndCapture(stream_.handle(), &graph);
  if (graph != nullptr) driver.cuGraphDestroy(graph);
}

GpuGraph GpuGraph::Recording::finish() {
  const GpuDevice& device = stream_.device();
  const CudaDriver& driver = device.driver();
  const CurrentContext current(device);
  open_ = false;
  CUgraph graph = nullptr;
  driver.check(driver.cuStreamEndCapture(stream_.handle(), &graph), "cuStreamEndCapture", device.label());
  const auto destroy = [&driver](CUgraph handle) { driver.cuGraphDestroy(handle); };
  const std::unique_ptr<std::remove_pointer_t<CUgraph>, decltype(destroy)> owner(graph, destroy);

  GpuGraph result;
  result.nodes_ = count_nodes(device, graph);
  driver.check(driver.cuGraphInstantiateWithFlags(&result.handle_, graph, 0), "cuGraphInstantiateWithFlags",
               device.label());
  result.device_ = device;
  return result;
}

GpuGraph::~GpuGraph() {
  if (handle_ == nullptr || !device_) return;
  const CurrentContext current(*device_);
  device_->driver().cuGraphExecDestroy(handle_);
}

GpuGraph::GpuGraph(GpuGraph&& other) noexcept
    : device_(std::move(other.device_)),
      handle_(std::exchange(other.handle_, nullptr)),
      nodes_(other.nodes_) {}

GpuGraph& GpuGraph::operator=(GpuGraph&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  std::swap(nodes_, other.nodes_);
  return *this;
}

void GpuGraph::upload(GpuStream& stream) const {
  SINTER_CHECK(!is_empty(), "upload of an empty graph");
  const CurrentContext current(*device_);
  device_->driver().check(device_->driver().cuGraphUpload(handle_, stream.handle()), "cuGraphUpload",
                          device_->label());
}

void GpuGraph::launch(GpuStream& stream) const {
  SINTER_CHECK(!is_empty(), "launch of an empty graph");
  const CurrentContext current(*device_);
  device_->driver().check(device_->driver().cuGraphLaunch(handle_, stream.handle()), "cuGraphLaunch",
                          device_->label());
  ++device_->context().num_graph_launches;
}

}  // namespace sinter
