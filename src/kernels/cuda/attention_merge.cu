// The stretches of the context that attention kernels left, added in their order. SINTER_Q: float or Bf16.
#include "gpu/attention_params.h"
#include "gpu/numerics.h"

namespace sinter::gpu {

// sums [T * Q, num_splits, Dv], states [T * Q, num_splits, 2]: largest score and mass, y [T * Q, Dv]
SINTER_KERNEL(128)
attention_merge(const float* sums, const float* states, SINTER_Q* y, AttentionMergeParams p) {
  begin_kernel();
  const I64 item = block_x();
  sums += item * p.num_splits * p.Dv;
  states += item * p.num_splits * 2;
  float largest = -infinity();
  for (int split = 0; split < p.num_splits; ++split) largest = max_of(largest, states[2 * split]);
  const auto factor = [&](int split) {
    const float max = states[2 * split];
    // A stretch without a row counts nothing, also when all are so.
    return max == -infinity() ? 0 : max == largest ? 1 : expf(max - largest);
  };
  float mass = 0;
  for (int split = 0; split < p.num_splits; ++split) mass += factor(split) * states[2 * split + 1];
  for (int i = thread_idx(); i < p.Dv; i += num_threads()) {
    float sum = 0;
    for (int split = 0; split < p.num_splits; ++split)
      sum += factor(split) * sums[static_cast<I64>(split) * p.Dv + i];
    store(y + item * p.Dv, i, mass == 0 ? 0 : sum / mass);
  }
}

}  // namespace sinter::gpu
