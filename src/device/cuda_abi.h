// Types and constants of the CUDA driver's binary interface, declared by us so that no toolkit is needed.
// Types have the driver's names. tests/device/cuda_header_test.cc compares all of it with cuda.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sinter::cuda_abi {

using CUresult = int;  // the driver's enumerations are 32-bit integers here
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;

struct CUuuid {
  unsigned char bytes[16];
};

enum ResultCode : CUresult {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kInvalidImage = 200,
  kNoBinaryForGpu = 209,
  kEccUncorrectable = 214,
  kInvalidPtx = 218,
  kUnsupportedPtxVersion = 222,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kPeerAccessAlreadyEnabled = 704,
  kAssert = 710,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailed = 719,
  kCooperativeLaunchTooLarge = 720,
  kNotSupported = 801,
  kSystemDriverMismatch = 803,
};

enum DeviceAttribute : int {
  kClockRateKhz = 13,
  kMultiprocessorCount = 16,
  kIntegrated = 18,
  kMemoryClockRateKhz = 36,
  kGlobalMemoryBusWidth = 37,
  kL2CacheSize = 38,
  kMaxThreadsPerMultiprocessor = 39,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerMultiprocessor = 81,
  kMaxRegistersPerMultiprocessor = 82,
  kPageableMemoryAccess = 88,
  kMaxSharedMemoryPerBlockOptin = 97,
  kReadOnlyHostRegisterSupported = 113,
  kHostNumaId = 134,
};

enum FunctionAttribute : int {
  kMaxThreadsPerBlock = 0,
  kSharedSizeBytes = 1,
  kLocalSizeBytes = 3,
  kNumRegisters = 4,
  kMaxDynamicSharedSizeBytes = 8,
};

enum PeerAttribute : int { kPerformanceRank = 1, kAccessSupported = 2, kNativeAtomicSupported = 3 };

enum GraphNodeType : int {
  kKernelNode = 0,
  kCopyNode = 1,
  kFillNode = 2,
  kHostNode = 3,
  kEmptyNode = 5,
  kEventWaitNode = 6,
  kEventRecordNode = 7,
  kAllocationNode = 10,
  kFreeNode = 11,
};

// Flags of single calls.
inline constexpr uint64_t kLegacyStreamSymbols = 1;   // cuGetProcAddress
inline constexpr unsigned kStreamNonBlocking = 1;     // cuStreamCreateWithPriority
inline constexpr unsigned kEventDisableTiming = 2;    // cuEventCreate
inline constexpr unsigned kEventRecordExternal = 1;   // cuEventRecordWithFlags
inline constexpr int kCaptureThreadLocal = 1;         // cuStreamBeginCapture
inline constexpr int kCaptureStatusActive = 1;        // cuStreamIsCapturing
inline constexpr unsigned kHostAllocPortable = 1;     // cuMemHostAlloc
inline constexpr unsigned kHostRegisterPortable = 1;  // cuMemHostRegister
inline constexpr unsigned kHostRegisterReadOnly = 8;

enum LaunchAttributeId : unsigned {
  kCooperative = 2,
  kClusterDimension = 4,
  kProgrammaticStreamSerialization = 6,
};

struct CUlaunchAttribute {
  unsigned id;
  char pad[4];
  union Value {
    char pad[64];
    int flag;  // kCooperative, kProgrammaticStreamSerialization
    struct {
      unsigned x, y, z;
    } cluster;
  } value;
};

struct CUlaunchConfig {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  CUstream stream;
  CUlaunchAttribute* attributes;
  unsigned num_attributes;
};

}  // namespace sinter::cuda_abi
