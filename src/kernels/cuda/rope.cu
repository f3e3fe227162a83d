// ops::RopeProblem, in place. SINTER_X: float or Bf16.
#include "gpu/numerics.h"
#include "gpu/rope_params.h"
#include "gpu/warp.h"

namespace sinter::gpu {

// x [T, N, R], positions [T], inv_freq [R/2]
SINTER_KERNEL(1024)
rope(SINTER_X* x, const int* positions, const float* inv_freq, RopeParams p) {
  SINTER_SHARED(float, cosines, kMaxRotary / 2);
  SINTER_SHARED(float, sines, kMaxRotary / 2);
  begin_kernel();
  const int half = p.R / 2;
  const float position = static_cast<float>(positions[block_x()]);
  for (int i = thread_idx(); i < half; i += num_threads()) {
    const float angle = position * inv_freq[i];
    cosines[i] = cosf(angle) * p.scale;
    sines[i] = sinf(angle) * p.scale;
  }
  sync_block();
  SINTER_X* token = x + block_x() * p.stride_token;
  for (int item = thread_idx(); item < p.N * half; item += num_threads()) {
    const int i = item % half;
    SINTER_X* head = token + item / half * p.stride_head;
    const int first = p.interleaved ? 2 * i : i;
    const int second = p.interleaved ? 2 * i + 1 : i + half;
    const float a = load(head, first), b = load(head, second);
    store(head, first, a * cosines[i] - b * sines[i]);
    store(head, second, a * sines[i] + b * cosines[i]);
  }
}

}  // namespace sinter::gpu
