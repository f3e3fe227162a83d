// Numbers of cuda.head_linear_decode and cuda.head_linear_prefill: as linear's, with Q as grid.z.
#pragma once

namespace sinter::gpu {

struct HeadLinearParams {
  int T, N, K;
  long long x_stride_token, x_stride_head, y_stride_token, y_stride_head;  // elements
};

}  // namespace sinter::gpu
