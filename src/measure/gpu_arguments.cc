#include "measure/gpu_arguments.h"

#include <algorithm>
#include <type_traits>

#include "base/error.h"
#include "device/gpu_memory.h"
#include "ops/tensors.h"

namespace sinter::measure {
namespace {

constexpr size_t kGuardBytes = 256;
constexpr std::byte kGuard{0xff};  // NaN to whoever reads it

bool lies_in(const TensorView& tensor, std::span<const std::byte> memory) {
  const auto address = reinterpret_cast<uintptr_t>(tensor.data());
  const auto begin = reinterpret_cast<uintptr_t>(memory.data());
  return address >= begin && address < begin + memory.size();
}

}  // namespace

GpuArguments::GpuArguments(Arguments& arguments, const GpuDevice& device, kernels::GpuLaunch& launch)
    : arguments_(arguments), device_(device), launch_(launch), args_(arguments.args()) {
  weights_.source = arguments.weights().source;
  std::visit(
      [&](auto& args) {
        if constexpr (requires { args.experts; }) args.experts = &weights_;
        if constexpr (std::is_same_v<decltype(args), ops::LinearArgs&>) args.weight = &weights_;
      },
      args_);
  ops::for_each_tensor(args_, [&](TensorView& tensor) {
    if (tensor.is_empty()) return;
    const Region& region = region_of(tensor);
    const auto offset = static_cast<std::byte*>(tensor.data()) - region.host.data();
    tensor = tensor.moved_to(region.memory.data() + offset);
  });
  for (const Arguments::Output& output : arguments.outputs()) region_of(output.view).is_output = true;
}

GpuArguments::Region& GpuArguments::region_of(const TensorView& tensor) {
  for (Region& region : regions_)
    if (lies_in(tensor, region.host)) return region;
  for (const Buffer& buffer : arguments_.buffers()) {
    if (!lies_in(tensor, buffer.bytes())) continue;
    regions_.push_back({device_buffer(device_, buffer.size_bytes() + kGuardBytes), buffer.bytes()});
    Region& region = regions_.back();
    launch_.stream.copy(region.memory.data(), region.host.data(), region.host.size());
    launch_.stream.fill(region.memory.data() + region.host.size(), static_cast<uint8_t>(kGuard), kGuardBytes);
    return region;
  }
  SINTER_CHECK(false, "a tensor lies outside of the memory of its arguments");
}

void GpuArguments::pack_for(const kernels::KernelInfo& kernel, ThreadPool& pool) {
  SINTER_CHECK(kernel.processor == kernels::Processor::kGpu, "{} packs no weights for a GPU", kernel.name);
  if (weights_.layout == kernel.layout && weights_.packed.size_bytes() != 0) return;
  weights_.layout = kernel.layout;
  weights_.packed = {};
  if (kernel.pack == nullptr) return;
  weights_.packed = device_buffer(device_, kernel.packed_bytes(weights_.source));
  // The uploader has a stream of its own.
  launch_.stream.fill(weights_.packed.data(), static_cast<uint8_t>(kGuard), weights_.packed.size_bytes());
  launch_.stream.synchronize();
  kernels::LaunchContext context{.pool = pool, .workspace = {}, .gpu = &launch_};
  kernel.pack(context, weights_.source, weights_.packed.bytes());
  launch_.uploader.finish();
}

void GpuArguments::reset_outputs() {
  arguments_.reset_outputs();
  for (const Region& region : regions_)
    if (region.is_output) launch_.stream.copy(region.memory.data(), region.host.data(), region.host.size());
}

void GpuArguments::read_outputs() {
  for (const Region& region : regions_)
    if (region.is_output) launch_.stream.copy(region.host.data(), region.memory.data(), region.host.size());
  launch_.stream.synchronize();
}

bool GpuArguments::are_inputs_intact() {
  std::vector<std::byte> found;
  for (const Region& region : regions_) {
    found.resize(region.memory.size_bytes());
    launch_.stream.copy(found.data(), region.memory.data(), found.size());
    launch_.stream.synchronize();
    const auto guard = found.begin() + static_cast<ptrdiff_t>(region.host.size());
    if (!std::all_of(guard, found.end(), [](std::byte byte) { return byte == kGuard; })) return false;
    if (!region.is_output && !std::equal(found.begin(), guard, region.host.begin())) return false;
  }
  return true;
}

}  // namespace sinter::measure
