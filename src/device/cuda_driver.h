// The CUDA driver, libcuda.so.1, opened by name at first use. Without it everything else works and the GPU is
// unavailable for a reason that a person can read.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "device/cuda_abi.h"

// name, the CUDA version whose binary interface is asked for, parameters. The version is that of the
// PFN_<name>_v typedef with these parameters in cudaTypedefs.h: the same name has other parameters in other
// versions.
#define SINTER_CUDA_FUNCTIONS(X)                                                                   \
  X(cuInit, 2000, (unsigned flags))                                                                \
  X(cuGetErrorName, 6000, (CUresult, const char** text))                                           \
  X(cuGetErrorString, 6000, (CUresult, const char** text))                                         \
  X(cuDriverGetVersion, 2020, (int* version))                                                      \
  X(cuDeviceGetCount, 2000, (int* count))                                                          \
  X(cuDeviceGet, 2000, (CUdevice*, int device_idx))                                                \
  X(cuDeviceGetName, 2000, (char* name, int size, CUdevice))                                       \
  X(cuDeviceGetUuid, 11040, (CUuuid*, CUdevice))                                                   \
  X(cuDeviceGetPCIBusId, 4010, (char* id, int size, CUdevice))                                     \
  X(cuDeviceTotalMem, 3020, (size_t*, CUdevice))                                                   \
  X(cuDeviceGetAttribute, 2000, (int* value, int attribute, CUdevice))                             \
  X(cuDeviceCanAccessPeer, 4000, (int* can, CUdevice, CUdevice peer))                              \
  X(cuDeviceGetP2PAttribute, 8000, (int* value, int attribute, CUdevice, CUdevice peer))           \
  X(cuDevicePrimaryCtxRetain, 7000, (CUcontext*, CUdevice))                                        \
  X(cuDevicePrimaryCtxRelease, 11000, (CUdevice))                                                  \
  X(cuCtxPushCurrent, 4000, (CUcontext))                                                           \
  X(cuCtxPopCurrent, 4000, (CUcontext*))                                                           \
  X(cuCtxSynchronize, 2000, ())                                                                    \
  X(cuCtxGetStreamPriorityRange, 5050, (int* least, int* greatest))                                \
  X(cuCtxEnablePeerAccess, 4000, (CUcontext peer, unsigned flags))                                 \
  X(cuMemGetInfo, 3020, (size_t*, size_t*))                                                        \
  X(cuMemAlloc, 3020, (CUdeviceptr*, size_t bytes))                                                \
  X(cuMemFree, 3020, (CUdeviceptr))                                                                \
  X(cuMemHostAlloc, 2020, (void**, size_t bytes, unsigned flags))                                  \
  X(cuMemFreeHost, 2000, (void*))                                                                  \
  X(cuMemHostRegister, 6050, (void*, size_t bytes, unsigned flags))                                \
  X(cuMemHostUnregister, 4000, (void*))                                                            \
  X(cuMemcpyAsync, 4000, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream))               \
  X(cuMemsetD8Async, 3020, (CUdeviceptr, unsigned char value, size_t count, CUstream))             \
  X(cuStreamCreateWithPriority, 5050, (CUstream*, unsigned flags, int priority))                   \
  X(cuStreamDestroy, 4000, (CUstream))                                                             \
  X(cuStreamSynchronize, 2000, (CUstream))                                                         \
  X(cuStreamQuery, 2000, (CUstream))                                                               \
  X(cuStreamWaitEvent, 3020, (CUstream, CUevent, unsigned flags))                                  \
  X(cuEventCreate, 2000, (CUevent*, unsigned flags))                                               \
  X(cuEventDestroy, 4000, (CUevent))                                                               \
  X(cuEventRecord, 2000, (CUevent, CUstream))                                                      \
  X(cuEventRecordWithFlags, 11010, (CUevent, CUstream, unsigned flags))                            \
  X(cuEventSynchronize, 2000, (CUevent))                                                           \
  X(cuEventQuery, 2000, (CUevent))                                                                 \
  X(cuEventElapsedTime, 2000, (float* milliseconds, CUevent begin, CUevent end))                   \
  X(cuModuleLoadData, 2000, (CUmodule*, const void* image))                                        \
  X(cuModuleUnload, 2000, (CUmodule))                                                              \
  X(cuModuleGetFunction, 2000, (CUfunction*, CUmodule, const char* name))                          \
  X(cuModuleGetGlobal, 3020, (CUdeviceptr*, size_t*, CUmodule, const char* name))                  \
  X(cuFuncLoad, 12040, (CUfunction))                                                               \
  X(cuFuncGetAttribute, 2020, (int* value, int attribute, CUfunction))                             \
  X(cuFuncSetAttribute, 9000, (CUfunction, int attribute, int value))                              \
  X(cuFuncGetParamInfo, 12040, (CUfunction, size_t idx, size_t*, size_t*))                         \
  X(cuLaunchKernelEx, 11060, (const CUlaunchConfig*, CUfunction, void** parameters, void** extra)) \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050,                                             \
    (int* count, CUfunction, int block_threads, size_t shared_bytes))                              \
  X(cuOccupancyMaxActiveClusters, 11070, (int* count, CUfunction, const CUlaunchConfig*))          \
  X(cuStreamBeginCapture, 10010, (CUstream, int mode))                                             \
  X(cuStreamEndCapture, 10000, (CUstream, CUgraph*))                                               \
  X(cuStreamIsCapturing, 10000, (CUstream, int* status))                                           \
  X(cuGraphInstantiateWithFlags, 11040, (CUgraphExec*, CUgraph, unsigned long long flags))         \
  X(cuGraphDestroy, 10000, (CUgraph))                                                              \
  X(cuGraphExecDestroy, 10000, (CUgraphExec))                                                      \
  X(cuGraphUpload, 11010, (CUgraphExec, CUstream))                                                 \
  X(cuGraphLaunch, 10000, (CUgraphExec, CUstream))                                                 \
  X(cuGraphGetNodes, 10000, (CUgraph, CUgraphNode*, size_t*))                                      \
  X(cuGraphNodeGetType, 10000, (CUgraphNode, int* type))

namespace sinter {

namespace cuda_abi {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a list of parameter types has its own
#define SINTER_CUDA_TYPE(name, version, parameters) using name##_fn = CUresult(*) parameters;
SINTER_CUDA_FUNCTIONS(SINTER_CUDA_TYPE)
#undef SINTER_CUDA_TYPE
}  // namespace cuda_abi

// CUDA 12.4 is driver 550.54.14 on Linux. It is the first long-lived branch whose captured graphs keep
// programmatic dependent launches (12.3) and that loads a kernel on request (cuFuncLoad), not at first
// launch.
inline constexpr int kMinCudaVersion = 12040;
inline constexpr std::string_view kMinDriver = "550.54.14";

struct CudaDriver {
#define SINTER_CUDA_MEMBER(name, version, parameters) cuda_abi::name##_fn name = nullptr;
  SINTER_CUDA_FUNCTIONS(SINTER_CUDA_MEMBER)
#undef SINTER_CUDA_MEMBER
  int version = 0;  // the newest CUDA it runs: 13000 is 13.0

  // Throws Error unless `result` is success: "<where>: <call>: CUDA_ERROR_X (2): the driver's text". kMemory
  // for memory, kUnsupported for what this GPU or driver cannot do, kInternal for what only a bug explains.
  void check(cuda_abi::CUresult result, const char* call, std::string_view where) const {
    if (result != cuda_abi::kSuccess) [[unlikely]]
      raise(result, call, where);
  }
  [[noreturn]] void raise(cuda_abi::CUresult result, const char* call, std::string_view where) const;
  // "CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected".
  std::string text(cuda_abi::CUresult result) const;
};

struct CudaDriverSearch {
  std::optional<CudaDriver> driver;  // initialised; none: see reason
  std::string reason;                // "libcuda.so.1 not found: no NVIDIA driver is installed"
  bool is_missing = false;           // there is none, rather than one that cannot be used
};

// Opens, checks the version, resolves every function, initialises. Throws nothing.
CudaDriverSearch open_cuda_driver(const std::string& library);

// This machine's driver, opened once.
const CudaDriverSearch& find_cuda_driver();
// The same; throws Error(kUnsupported) with the reason where there is none.
const CudaDriver& cuda_driver();

// 12040 -> "12.4".
std::string cuda_version_text(int version);

}  // namespace sinter
