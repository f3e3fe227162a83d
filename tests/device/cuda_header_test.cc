// Our declarations of the driver's interface against those of cuda.h. Everything but the last test is checked
// by the compiler. Our headers come first: cuda.h renames functions with macros.
#include "device/cuda_abi.h"
#include "device/cuda_driver.h"

#include <cuda.h>
#include <cudaTypedefs.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "device/abi.h"

namespace sinter {
namespace {

using testing::kSameAbi;

#define SINTER_SAME_TYPE(name, version, parameters) \
  static_assert(kSameAbi<cuda_abi::name##_fn, PFN_##name##_v##version>, #name);
SINTER_CUDA_FUNCTIONS(SINTER_SAME_TYPE)

#define SINTER_SAME_VALUE(ours, theirs) \
  static_assert(static_cast<long long>(cuda_abi::ours) == static_cast<long long>(theirs))
SINTER_SAME_VALUE(kSuccess, CUDA_SUCCESS);
SINTER_SAME_VALUE(kInvalidValue, CUDA_ERROR_INVALID_VALUE);
SINTER_SAME_VALUE(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
SINTER_SAME_VALUE(kNoDevice, CUDA_ERROR_NO_DEVICE);
SINTER_SAME_VALUE(kInvalidImage, CUDA_ERROR_INVALID_IMAGE);
SINTER_SAME_VALUE(kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
SINTER_SAME_VALUE(kEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE);
SINTER_SAME_VALUE(kInvalidPtx, CUDA_ERROR_INVALID_PTX);
SINTER_SAME_VALUE(kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SINTER_SAME_VALUE(kNotFound, CUDA_ERROR_NOT_FOUND);
SINTER_SAME_VALUE(kNotReady, CUDA_ERROR_NOT_READY);
SINTER_SAME_VALUE(kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
SINTER_SAME_VALUE(kPeerAccessAlreadyEnabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
SINTER_SAME_VALUE(kAssert, CUDA_ERROR_ASSERT);
SINTER_SAME_VALUE(kHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR);
SINTER_SAME_VALUE(kIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION);
SINTER_SAME_VALUE(kMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS);
SINTER_SAME_VALUE(kInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE);
SINTER_SAME_VALUE(kInvalidPc, CUDA_ERROR_INVALID_PC);
SINTER_SAME_VALUE(kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
SINTER_SAME_VALUE(kCooperativeLaunchTooLarge, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
SINTER_SAME_VALUE(kNotSupported, CUDA_ERROR_NOT_SUPPORTED);
SINTER_SAME_VALUE(kSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);

SINTER_SAME_VALUE(kClockRateKhz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SINTER_SAME_VALUE(kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SINTER_SAME_VALUE(kIntegrated, CU_DEVICE_ATTRIBUTE_INTEGRATED);
SINTER_SAME_VALUE(kMemoryClockRateKhz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SINTER_SAME_VALUE(kGlobalMemoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SINTER_SAME_VALUE(kL2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SINTER_SAME_VALUE(kMaxThreadsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
SINTER_SAME_VALUE(kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SINTER_SAME_VALUE(kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SINTER_SAME_VALUE(kMaxSharedMemoryPerMultiprocessor,
                  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SINTER_SAME_VALUE(kMaxRegistersPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
SINTER_SAME_VALUE(kPageableMemoryAccess, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
SINTER_SAME_VALUE(kMaxSharedMemoryPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SINTER_SAME_VALUE(kReadOnlyHostRegisterSupported, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED);
SINTER_SAME_VALUE(kHostNumaId, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);

SINTER_SAME_VALUE(kMaxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SINTER_SAME_VALUE(kSharedSizeBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SINTER_SAME_VALUE(kLocalSizeBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SINTER_SAME_VALUE(kNumRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS);
SINTER_SAME_VALUE(kMaxDynamicSharedSizeBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SINTER_SAME_VALUE(kPerformanceRank, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK);
SINTER_SAME_VALUE(kAccessSupported, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED);
SINTER_SAME_VALUE(kNativeAtomicSupported, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED);

SINTER_SAME_VALUE(kKernelNode, CU_GRAPH_NODE_TYPE_KERNEL);
SINTER_SAME_VALUE(kCopyNode, CU_GRAPH_NODE_TYPE_MEMCPY);
SINTER_SAME_VALUE(kFillNode, CU_GRAPH_NODE_TYPE_MEMSET);
SINTER_SAME_VALUE(kHostNode, CU_GRAPH_NODE_TYPE_HOST);
SINTER_SAME_VALUE(kEmptyNode, CU_GRAPH_NODE_TYPE_EMPTY);
SINTER_SAME_VALUE(kEventWaitNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
SINTER_SAME_VALUE(kEventRecordNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
SINTER_SAME_VALUE(kAllocationNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
SINTER_SAME_VALUE(kFreeNode, CU_GRAPH_NODE_TYPE_MEM_FREE);

SINTER_SAME_VALUE(kLegacyStreamSymbols, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
SINTER_SAME_VALUE(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
SINTER_SAME_VALUE(kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
SINTER_SAME_VALUE(kEventRecordExternal, CU_EVENT_RECORD_EXTERNAL);
SINTER_SAME_VALUE(kCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SINTER_SAME_VALUE(kCaptureStatusActive, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SINTER_SAME_VALUE(kHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE);
SINTER_SAME_VALUE(kHostRegisterPortable, CU_MEMHOSTREGISTER_PORTABLE);
SINTER_SAME_VALUE(kHostRegisterReadOnly, CU_MEMHOSTREGISTER_READ_ONLY);
SINTER_SAME_VALUE(kCooperative, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
SINTER_SAME_VALUE(kClusterDimension, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SINTER_SAME_VALUE(kProgrammaticStreamSerialization, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);

#define SINTER_SAME_PLACE(type, ours, theirs) \
  static_assert(offsetof(cuda_abi::type, ours) == offsetof(::type, theirs))
static_assert(sizeof(cuda_abi::CUuuid) == sizeof(::CUuuid));
static_assert(sizeof(cuda_abi::CUdeviceptr) == sizeof(::CUdeviceptr));
static_assert(sizeof(cuda_abi::CUlaunchAttribute) == sizeof(::CUlaunchAttribute));
SINTER_SAME_PLACE(CUlaunchAttribute, id, id);
SINTER_SAME_PLACE(CUlaunchAttribute, value, value);
SINTER_SAME_PLACE(CUlaunchAttribute, value.flag, value.cooperative);
SINTER_SAME_PLACE(CUlaunchAttribute, value.flag, value.programmaticStreamSerializationAllowed);
SINTER_SAME_PLACE(CUlaunchAttribute, value.cluster.z, value.clusterDim.z);
static_assert(sizeof(cuda_abi::CUlaunchConfig) == sizeof(::CUlaunchConfig));
SINTER_SAME_PLACE(CUlaunchConfig, grid_x, gridDimX);
SINTER_SAME_PLACE(CUlaunchConfig, grid_y, gridDimY);
SINTER_SAME_PLACE(CUlaunchConfig, grid_z, gridDimZ);
SINTER_SAME_PLACE(CUlaunchConfig, block_x, blockDimX);
SINTER_SAME_PLACE(CUlaunchConfig, block_y, blockDimY);
SINTER_SAME_PLACE(CUlaunchConfig, block_z, blockDimZ);
SINTER_SAME_PLACE(CUlaunchConfig, shared_bytes, sharedMemBytes);
SINTER_SAME_PLACE(CUlaunchConfig, stream, hStream);
SINTER_SAME_PLACE(CUlaunchConfig, attributes, attrs);
SINTER_SAME_PLACE(CUlaunchConfig, num_attributes, numAttrs);

// The comparison must not be blind: the same name has other parameters in another version, and close
// relatives differ.
static_assert(!kSameAbi<cuda_abi::cuCtxSynchronize_fn, PFN_cuCtxSynchronize_v13000>);
static_assert(!kSameAbi<cuda_abi::cuEventRecord_fn, PFN_cuEventRecordWithFlags_v11010>);
static_assert(!kSameAbi<cuda_abi::cuMemFree_fn, PFN_cuMemAlloc_v3020>);
static_assert(!kSameAbi<cuda_abi::cuDeviceGetCount_fn, PFN_cuDeviceTotalMem_v3020>);

TEST(CudaHeader, EveryFunctionExistedInTheOldestDriver) {
#define SINTER_OLD_ENOUGH(name, version, parameters) EXPECT_LE(version, kMinCudaVersion) << #name;
  SINTER_CUDA_FUNCTIONS(SINTER_OLD_ENOUGH)
}

}  // namespace
}  // namespace sinter
