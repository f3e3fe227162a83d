#include "device/fake_cuda.h"

#include <cstdlib>
#include <cstring>
#include <map>

#include "device/cuda_driver.h"

namespace sinter::testing {
namespace {

using namespace cuda_abi;

FakeCuda fake;

CUresult in_context(CUresult result) {
  if (fake.depth == 0) ++fake.calls_without_context;
  return result;
}

template <typename Handle>
CUresult make(Handle* handle, int& alive) {
  *handle = reinterpret_cast<Handle>(static_cast<uintptr_t>(0x1000 + ++alive));
  return in_context(kSuccess);
}

CUresult unmake(int& alive) {
  --alive;
  return in_context(kSuccess);
}

CUresult work(int node_type) {
  if (fake.capturing != 0) fake.captured.push_back(node_type);
  return in_context(kSuccess);
}

CUresult device_attribute(int* value, int attribute, CUdevice) {
  static const std::map<int, int> values = {{kMultiprocessorCount, 132},
                                            {kL2CacheSize, 60 << 20},
                                            {kClockRateKhz, 1980000},
                                            {kMaxThreadsPerMultiprocessor, 2048},
                                            {kMaxSharedMemoryPerMultiprocessor, 233472},
                                            {kMaxSharedMemoryPerBlockOptin, 232448},
                                            {kMaxRegistersPerMultiprocessor, 65536}};
  if (attribute == kComputeCapabilityMajor) return *value = fake.major, kSuccess;
  if (attribute == kComputeCapabilityMinor) return *value = fake.minor, kSuccess;
  const auto found = values.find(attribute);
  if (found == values.end()) return kInvalidValue;
  return *value = found->second, kSuccess;
}

CUresult function_attribute(int* value, int attribute, CUfunction) {
  *value = attribute == kMaxThreadsPerBlock ? 512
           : attribute == kNumRegisters     ? 96
           : attribute == kSharedSizeBytes  ? 1024
                                            : 0;
  return in_context(kSuccess);
}

CUresult allocate(CUdeviceptr* address, size_t bytes) {
  if (fake.capturing != 0) return kNotSupported;
  if (bytes > fake.memory_bytes - fake.used_bytes) return in_context(kOutOfMemory);
  void* data = std::malloc(bytes + 16);
  std::memcpy(data, &bytes, sizeof(bytes));
  fake.used_bytes += bytes;
  ++fake.num_buffers;
  *address = reinterpret_cast<CUdeviceptr>(data) + 16;
  return in_context(kSuccess);
}

CUresult release(CUdeviceptr address) {
  void* data = reinterpret_cast<void*>(address - 16);
  size_t bytes = 0;
  std::memcpy(&bytes, data, sizeof(bytes));
  fake.used_bytes -= bytes;
  std::free(data);
  return unmake(fake.num_buffers);
}

CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
  if (fake.capturing == 0) std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return work(kCopyNode);
}

CUresult fill(CUdeviceptr to, unsigned char value, size_t count, CUstream) {
  if (fake.capturing == 0) std::memset(reinterpret_cast<void*>(to), value, count);
  return work(kFillNode);
}

CUresult launch(const CUlaunchConfig* config, CUfunction, void** parameters, void**) {
  if (fake.launch_result != kSuccess) return fake.launch_result;
  FakeLaunch launched{*config, {config->attributes, config->attributes + config->num_attributes}, 0, 0};
  std::memcpy(&launched.first, parameters[0], 8);
  std::memcpy(&launched.second, parameters[1], 4);
  fake.launches.push_back(launched);
  return work(kKernelNode);
}

CUresult graph_nodes(CUgraph, CUgraphNode* nodes, size_t* count) {
  for (size_t i = 0; nodes != nullptr && i < *count; ++i) nodes[i] = reinterpret_cast<CUgraphNode>(i + 1);
  *count = fake.captured.size();
  return kSuccess;
}

template <typename Function>
void* address(Function function) {
  return reinterpret_cast<void*>(+function);
}

// Functions that do something; every other succeeds and does nothing.
const std::map<std::string, void*>& functions() {
  static const std::map<std::string, void*> table = {
      {"cuInit", address([](unsigned) { return fake.init_result; })},
      {"cuGetErrorName", address([](CUresult result, const char** text) -> CUresult {
         *text = result == kOutOfMemory      ? "CUDA_ERROR_OUT_OF_MEMORY"
                 : result == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                             : "CUDA_ERROR_X";
         return kSuccess;
       })},
      {"cuGetErrorString", address([](CUresult result, const char** text) -> CUresult {
         *text = result == kOutOfMemory ? "out of memory" : "the driver's text";
         return kSuccess;
       })},
      {"cuDriverGetVersion",
       address([](int* version) -> CUresult { return *version = fake.version, kSuccess; })},
      {"cuDeviceGetCount",
       address([](int* count) -> CUresult { return *count = fake.num_devices, kSuccess; })},
      {"cuDeviceGet",
       address([](CUdevice* device, int device_idx) -> CUresult { return *device = device_idx, kSuccess; })},
      {"cuDeviceGetName", address([](char* name, int, CUdevice) -> CUresult {
         return std::strcpy(name, "Fake GPU"), kSuccess;
       })},
      {"cuDeviceGetPCIBusId", address([](char* id, int, CUdevice) -> CUresult {
         return std::strcpy(id, "0000:17:00.0"), kSuccess;
       })},
      {"cuDeviceGetUuid", address([](CUuuid* uuid, CUdevice) -> CUresult {
         for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<unsigned char>(i);
         return kSuccess;
       })},
      {"cuDeviceTotalMem",
       address([](size_t* bytes, CUdevice) -> CUresult { return *bytes = fake.memory_bytes, kSuccess; })},
      {"cuDeviceGetAttribute", address(device_attribute)},
      {"cuDeviceCanAccessPeer",
       address([](int* can, CUdevice from, CUdevice to) -> CUresult { return *can = from != to, kSuccess; })},
      {"cuDeviceGetP2PAttribute", address([](int* value, int attribute, CUdevice, CUdevice) -> CUresult {
         return *value = attribute, kSuccess;
       })},
      {"cuDevicePrimaryCtxRetain", address([](CUcontext* context, CUdevice) -> CUresult {
         *context = reinterpret_cast<CUcontext>(0x1);
         return ++fake.num_contexts, kSuccess;
       })},
      {"cuDevicePrimaryCtxRelease",
       address([](CUdevice) -> CUresult { return --fake.num_contexts, kSuccess; })},
      {"cuCtxPushCurrent", address([](CUcontext) -> CUresult { return ++fake.depth, kSuccess; })},
      {"cuCtxPopCurrent", address([](CUcontext*) -> CUresult { return --fake.depth, kSuccess; })},
      {"cuCtxEnablePeerAccess", address([](CUcontext, unsigned) -> CUresult { return fake.peer_result; })},
      {"cuMemGetInfo", address([](size_t* free_bytes, size_t* total_bytes) -> CUresult {
         *free_bytes = fake.memory_bytes - fake.used_bytes;
         *total_bytes = fake.memory_bytes;
         return in_context(kSuccess);
       })},
      {"cuMemAlloc", address(allocate)},
      {"cuMemFree", address(release)},
      {"cuMemHostAlloc", address([](void** data, size_t bytes, unsigned) -> CUresult {
         *data = std::malloc(bytes);
         return ++fake.num_buffers, in_context(kSuccess);
       })},
      {"cuMemFreeHost",
       address([](void* data) -> CUresult { return std::free(data), unmake(fake.num_buffers); })},
      {"cuMemHostRegister",
       address([](void*, size_t, unsigned) -> CUresult { return ++fake.num_pins, in_context(kSuccess); })},
      {"cuMemHostUnregister", address([](void*) -> CUresult { return unmake(fake.num_pins); })},
      {"cuMemcpyAsync", address(copy)},
      {"cuMemsetD8Async", address(fill)},
      {"cuStreamCreateWithPriority",
       address([](CUstream* stream, unsigned, int) -> CUresult { return make(stream, fake.num_streams); })},
      {"cuStreamDestroy", address([](CUstream) -> CUresult { return unmake(fake.num_streams); })},
      {"cuEventCreate",
       address([](CUevent* event, unsigned) -> CUresult { return make(event, fake.num_events); })},
      {"cuEventDestroy", address([](CUevent) -> CUresult { return unmake(fake.num_events); })},
      {"cuEventRecordWithFlags",
       address([](CUevent, CUstream, unsigned) -> CUresult { return work(kEventRecordNode); })},
      {"cuEventElapsedTime",
       address([](float* ms, CUevent, CUevent) -> CUresult { return *ms = 0.25f, in_context(kSuccess); })},
      {"cuModuleLoadData", address([](CUmodule* module, const void* image) -> CUresult {
         if (std::memcmp(image, "cubin", 5) != 0) return kNoBinaryForGpu;
         return make(module, fake.num_modules);
       })},
      {"cuModuleUnload", address([](CUmodule) -> CUresult { return unmake(fake.num_modules); })},
      {"cuModuleGetFunction", address([](CUfunction* function, CUmodule, const char* name) -> CUresult {
         *function = reinterpret_cast<CUfunction>(0x2);
         return in_context(std::strcmp(name, "absent") == 0 ? kNotFound : kSuccess);
       })},
      {"cuFuncGetAttribute", address(function_attribute)},
      {"cuFuncGetParamInfo", address([](CUfunction, size_t idx, size_t* offset, size_t* size) -> CUresult {
         if (idx >= 2) return kInvalidValue;
         *offset = 8 * idx;
         return *size = idx == 0 ? 8 : 4, kSuccess;
       })},
      {"cuLaunchKernelEx", address(launch)},
      {"cuStreamBeginCapture",
       address([](CUstream, int) -> CUresult { return fake.capturing = 1, in_context(kSuccess); })},
      {"cuStreamEndCapture", address([](CUstream, CUgraph* graph) -> CUresult {
         fake.capturing = 0;
         return make(graph, fake.num_graphs);
       })},
      {"cuStreamIsCapturing", address([](CUstream, int* status) -> CUresult {
         return *status = fake.capturing, in_context(kSuccess);
       })},
      {"cuGraphInstantiateWithFlags", address([](CUgraphExec* exec, CUgraph, unsigned long long) -> CUresult {
         return make(exec, fake.num_graphs);
       })},
      {"cuGraphDestroy", address([](CUgraph) -> CUresult { return unmake(fake.num_graphs); })},
      {"cuGraphExecDestroy", address([](CUgraphExec) -> CUresult { return unmake(fake.num_graphs); })},
      {"cuGraphGetNodes", address(graph_nodes)},
      {"cuGraphNodeGetType", address([](CUgraphNode node, int* type) -> CUresult {
         *type = fake.captured[reinterpret_cast<uintptr_t>(node) - 1];
         return kSuccess;
       })},
  };
  return table;
}

template <typename Function>
struct Nothing;
template <typename... Parameters>
struct Nothing<CUresult (*)(Parameters...)> {
  static CUresult succeed(Parameters...) { return in_context(kSuccess); }
};

}  // namespace

extern "C" {

__attribute__((visibility("default"))) FakeCuda* fake_cuda_state() { return &fake; }

__attribute__((visibility("default"))) CUresult cuDriverGetVersion(int* version) {
  return *version = fake.version, kSuccess;
}

__attribute__((visibility("default"))) CUresult cuGetProcAddress_v2(const char* symbol, void** function,
                                                                    int version, uint64_t, int*) {
  if (symbol == fake.missing || version > fake.version) return kNotFound;
  if (const auto found = functions().find(symbol); found != functions().end())
    return *function = found->second, kSuccess;
#define SINTER_FAKE_NOTHING(name, name_version, parameters) \
  if (std::strcmp(symbol, #name) == 0) return *function = address(&Nothing<name##_fn>::succeed), kSuccess;
  SINTER_CUDA_FUNCTIONS(SINTER_FAKE_NOTHING)
  return kNotFound;
}

}  // extern "C"
}  // namespace sinter::testing
