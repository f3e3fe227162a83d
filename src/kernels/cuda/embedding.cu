// ops::EmbeddingProblem. SINTER_WEIGHT: float, F16 or Bf16; SINTER_Y: float or Bf16.
#include "gpu/embedding_params.h"
#include "gpu/numerics.h"

namespace sinter::gpu {

// ids [T], weight [V, H], y [T, H]
SINTER_KERNEL(1024)
embedding(const int* ids, const SINTER_WEIGHT* weight, SINTER_Y* y, EmbeddingParams p) {
  begin_kernel();
  const I64 t = block_x();
  const SINTER_WEIGHT* source = weight + static_cast<I64>(ids[t]) * p.H;
  for (int h = thread_idx(); h < p.H; h += num_threads()) store(y + t * p.H, h, load(source, h));
}

}  // namespace sinter::gpu
