// Numbers of cuda.rope. Grid (T), any multiple of 32 threads up to 1024.
#pragma once

namespace sinter::gpu {

constexpr int kMaxRotary = 1024;  // R at most

struct RopeParams {
  int N, R;
  int interleaved;  // 0 or 1
  float scale;
  long long stride_token, stride_head;  // elements
};

}  // namespace sinter::gpu
