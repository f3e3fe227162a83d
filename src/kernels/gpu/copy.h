// Copies from global to shared memory that run beside the arithmetic (cp.async).
#pragma once

#include "gpu/target.h"

namespace sinter::gpu {

// 16 bytes, both addresses aligned to them; `valid_bytes` are read, the others become zero.
SINTER_DEVICE void copy_line_async(void* target, const void* source, int valid_bytes) {
#if defined(__CUDACC__)
  const U32 address = static_cast<U32>(__cvta_generic_to_shared(target));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(source), "r"(valid_bytes)
               : "memory");
#else
  simt::copy_async(target, source, valid_bytes);
#endif
}

SINTER_DEVICE void commit_copies() {
#if defined(__CUDACC__)
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  simt::commit_copies();
#endif
}

// Until all but the last `kPending` groups of this thread have landed.
template <int kPending>
SINTER_DEVICE void wait_copies() {
#if defined(__CUDACC__)
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#else
  simt::wait_copies(kPending);
#endif
}

}  // namespace sinter::gpu
