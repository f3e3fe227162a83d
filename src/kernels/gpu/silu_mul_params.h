// Numbers of cuda.silu_mul. Grid (T * ceil(I / kSiluMulColumns)), 256 threads.
#pragma once

namespace sinter::gpu {

constexpr int kSiluMulColumns = 1024;  // of a block

struct SiluMulParams {
  int I;
  long long gate_stride, up_stride, y_stride;  // elements
};

}  // namespace sinter::gpu
