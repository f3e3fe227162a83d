// ops::CacheWriteProblem. SINTER_X, SINTER_CACHE: float or Bf16.
#include "gpu/cache_write_params.h"
#include "gpu/numerics.h"

namespace sinter::gpu {

// x [T, W], cache [num_pages, P, W], page_table [B, max_pages], seq_idx [T], positions [T]
SINTER_KERNEL(1024)
cache_write(const SINTER_X* x, SINTER_CACHE* cache, const int* page_table, const int* seq_idx,
            const int* positions, CacheWriteParams p) {
  begin_kernel();
  const int t = block_x();
  const int position = positions[t];
  const I64 page = page_table[seq_idx[t] * p.page_table_stride + position / p.P];
  SINTER_CACHE* target = cache + (page * p.P + position % p.P) * p.W;
  for (int i = thread_idx(); i < p.W; i += num_threads()) store(target, i, load(x + t * p.x_stride, i));
}

}  // namespace sinter::gpu
