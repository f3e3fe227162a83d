// Launch geometry of the kernels that multiply weight rows with a few columns (gpu/row_product.h).
#pragma once

namespace sinter::gpu {

constexpr int kRowsAtOnce = 16;  // weight rows of a block
constexpr int kRowWarps = 8;     // at most

#ifndef __CUDACC_RTC__  // for hosts: NVRTC takes no host functions
// Threads of a block: the order of the sums follows, so it depends on K and the bytes of a weight alone.
// `lane_k`: weights in 16 bytes, 4 (f32), 8 (f16, bf16), 16 (fp8) or 32 (fp4, and mixed formats).
constexpr int row_product_threads(long long K, int lane_k) {
  const long long steps = (K + 4 * lane_k - 1) / (4 * lane_k);
  return 32 * static_cast<int>(steps < kRowWarps ? steps : kRowWarps);
}
#endif

}  // namespace sinter::gpu
