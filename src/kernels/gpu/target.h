// What device code asks of its compiler. The same text is compiled as plain C++ by tests that run the logic
// of kernels without a GPU: they define namespace sinter::simt before they include it.
#pragma once

#if defined(__CUDACC__)
#define SINTER_DEVICE __device__ __forceinline__
#define SINTER_KERNEL(max_threads) extern "C" __global__ void __launch_bounds__(max_threads, 1)
#define SINTER_SHARED(type, name, count) alignas(16) __shared__ type name[count]
#define SINTER_DYNAMIC_SHARED(name) alignas(16) extern __shared__ unsigned char name[]
#define SINTER_UNROLL _Pragma("unroll")
#define SINTER_NO_UNROLL _Pragma("unroll 1")
#else
#define SINTER_DEVICE inline
#ifndef SINTER_KERNEL  // a test makes it a template over the types that a compilation for the GPU fixes
#define SINTER_KERNEL(max_threads) inline void
#endif
#define SINTER_SHARED(type, name, count) \
  type(&name)[count] = ::sinter::simt::shared_array<type, count>(__FILE__, __LINE__)
#define SINTER_DYNAMIC_SHARED(name) unsigned char* const name = ::sinter::simt::dynamic_shared()
#define SINTER_UNROLL
#define SINTER_NO_UNROLL
#endif

namespace sinter::gpu {

using U8 = unsigned char;
using U16 = unsigned short;
using U32 = unsigned int;
using U64 = unsigned long long;
using I64 = long long;

constexpr int kWarp = 32;

#if defined(__CUDACC__)
SINTER_DEVICE int thread_idx() { return static_cast<int>(threadIdx.x); }
SINTER_DEVICE int num_threads() { return static_cast<int>(blockDim.x); }
SINTER_DEVICE int block_x() { return static_cast<int>(blockIdx.x); }
SINTER_DEVICE int block_y() { return static_cast<int>(blockIdx.y); }
SINTER_DEVICE int block_z() { return static_cast<int>(blockIdx.z); }
SINTER_DEVICE int num_blocks_x() { return static_cast<int>(gridDim.x); }
#else
inline int thread_idx() { return simt::thread_idx(); }
inline int num_threads() { return simt::num_threads(); }
inline int block_x() { return simt::block_x(); }
inline int block_y() { return simt::block_y(); }
inline int block_z() { return simt::block_z(); }
inline int num_blocks_x() { return simt::num_blocks_x(); }
#endif

SINTER_DEVICE int lane_idx() { return thread_idx() % kWarp; }
SINTER_DEVICE int warp_idx() { return thread_idx() / kWarp; }
SINTER_DEVICE int num_warps() { return num_threads() / kWarp; }

// The first statement of every kernel. With programmatic dependent launch a kernel may start while the one
// before it still runs: nothing is read before that one has ended; the next may be set up from here on.
// Without the launch attribute both instructions do nothing.
SINTER_DEVICE void begin_kernel() {
#if defined(__CUDACC__) && SINTER_HAS_DEPENDENT_LAUNCH
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

template <typename T>
SINTER_DEVICE constexpr T min_of(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
SINTER_DEVICE constexpr T max_of(T a, T b) {
  return a < b ? b : a;
}
template <typename T>
SINTER_DEVICE constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

}  // namespace sinter::gpu
