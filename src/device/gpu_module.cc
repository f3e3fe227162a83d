#include "device/gpu_module.h"

#include <utility>

#include "base/error.h"

namespace sinter {

using namespace cuda_abi;

GpuFunction::GpuFunction(GpuDevice device, CUfunction handle, std::string name)
    : device_(std::move(device)), handle_(handle), name_(std::move(name)) {
  const CudaDriver& driver = device_.driver();
  const std::string where = fmt::format("{}: {}", device_.label(), name_);
  driver.check(driver.cuFuncLoad(handle_), "cuFuncLoad", where);
  const auto attribute = [&](FunctionAttribute which) {
    int value = 0;
    driver.check(driver.cuFuncGetAttribute(&value, which, handle_), "cuFuncGetAttribute", where);
    return value;
  };
  num_registers_ = attribute(kNumRegisters);
  max_threads_ = attribute(kMaxThreadsPerBlock);
  local_bytes_ = attribute(kLocalSizeBytes);
  static_shared_bytes_ = attribute(kSharedSizeBytes);
  max_dynamic_shared_bytes_ = device_.info().block_shared_bytes - static_shared_bytes_;
  driver.check(driver.cuFuncSetAttribute(handle_, kMaxDynamicSharedSizeBytes,
                                         static_cast<int>(max_dynamic_shared_bytes_)),
               "cuFuncSetAttribute", where);
  size_t offset = 0, bytes = 0;
  while (driver.cuFuncGetParamInfo(handle_, parameter_bytes_.size(), &offset, &bytes) == kSuccess)
    parameter_bytes_.push_back(static_cast<uint32_t>(bytes));
}

int GpuFunction::blocks_per_sm(int block_threads, int64_t shared_bytes) const {
  const CurrentContext current(device_);
  const CudaDriver& driver = device_.driver();
  int count = 0;
  driver.check(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&count, handle_, block_threads,
                                                                  static_cast<size_t>(shared_bytes)),
               "cuOccupancyMaxActiveBlocksPerMultiprocessor", name_);
  return count;
}

int GpuFunction::max_clusters(const LaunchShape& shape) const {
  const CurrentContext current(device_);
  const CudaDriver& driver = device_.driver();
  const internal::LaunchRequest request(*this, shape, nullptr);
  int count = 0;
  driver.check(driver.cuOccupancyMaxActiveClusters(&count, handle_, &request.config),
               "cuOccupancyMaxActiveClusters", name_);
  return count;
}

GpuModule::GpuModule(const GpuDevice& device, std::span<const std::byte> image, std::string name)
    : device_(device), name_(std::move(name)) {
  const CurrentContext current(device_);
  const CudaDriver& driver = device_.driver();
  const CUresult result = driver.cuModuleLoadData(&handle_, image.data());
  if (result != kSuccess)
    driver.raise(result, "cuModuleLoadData", fmt::format("{}: {}", device_.label(), name_));
}

GpuModule::~GpuModule() {
  if (handle_ == nullptr) return;
  const CurrentContext current(device_);
  device_.driver().cuModuleUnload(handle_);
}

GpuModule::GpuModule(GpuModule&& other) noexcept
    : device_(std::move(other.device_)),
      name_(std::move(other.name_)),
      handle_(std::exchange(other.handle_, nullptr)) {}

GpuModule& GpuModule::operator=(GpuModule&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(name_, other.name_);
  std::swap(handle_, other.handle_);
  return *this;
}

GpuFunction GpuModule::function(const std::string& name) const {
  const CurrentContext current(device_);
  const CudaDriver& driver = device_.driver();
  CUfunction handle = nullptr;
  const CUresult result = driver.cuModuleGetFunction(&handle, handle_, name.c_str());
  if (result != kSuccess)
    driver.raise(result, "cuModuleGetFunction", fmt::format("{}: {} in {}", device_.label(), name, name_));
  return GpuFunction(device_, handle, name);
}

std::span<std::byte> GpuModule::variable(const std::string& name) const {
  const CurrentContext current(device_);
  const CudaDriver& driver = device_.driver();
  CUdeviceptr address = 0;
  size_t bytes = 0;
  const CUresult result = driver.cuModuleGetGlobal(&address, &bytes, handle_, name.c_str());
  if (result != kSuccess)
    driver.raise(result, "cuModuleGetGlobal", fmt::format("{}: {} in {}", device_.label(), name, name_));
  return {reinterpret_cast<std::byte*>(address), bytes};
}

namespace internal {

LaunchRequest::LaunchRequest(const GpuFunction& function, const LaunchShape& shape, CUstream stream)
    : attributes{},
      config{.grid_x = shape.grid.x,
             .grid_y = shape.grid.y,
             .grid_z = shape.grid.z,
             .block_x = shape.block.x,
             .block_y = shape.block.y,
             .block_z = shape.block.z,
             .shared_bytes = shape.shared_bytes,
             .stream = stream,
             .attributes = attributes,
             .num_attributes = 0} {
  const auto add = [this](LaunchAttributeId id) -> CUlaunchAttribute::Value& {
    CUlaunchAttribute& attribute = attributes[config.num_attributes++];
    attribute.id = id;
    return attribute.value;
  };
  if (shape.is_cooperative) add(kCooperative).flag = 1;
  if (shape.cluster.count() != 1)
    add(kClusterDimension).cluster = {shape.cluster.x, shape.cluster.y, shape.cluster.z};
  if (shape.is_dependent && function.device().info().arch->has_dependent_launch)
    add(kProgrammaticStreamSerialization).flag = 1;
}

}  // namespace internal
}  // namespace sinter
