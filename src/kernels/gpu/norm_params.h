// Numbers of cuda.rms_norm and cuda.layer_norm. Grid (N). The sums' order depends on the number of threads,
// so that one follows from H alone.
#pragma once

namespace sinter::gpu {

struct NormParams {
  int H;
  float eps;
  long long x_stride, y_stride;  // elements
};

#ifndef __CUDACC_RTC__  // for hosts: NVRTC takes no host functions
constexpr int norm_threads(long long H) {
  const long long threads = ((H + 7) / 8 + 31) / 32 * 32;
  return static_cast<int>(threads < 1024 ? threads : 1024);
}
#endif

}  // namespace sinter::gpu
