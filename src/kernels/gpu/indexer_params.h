// Numbers of cuda.indexer, in this order:
//   indexer_scores  grid (ceil(max_context / kIndexerRows), T), kIndexerThreads threads,
//                   indexer_shared_bytes(heads, D, q_parts) of dynamic shared memory
//   indexer_topk    grid (T), kTopkThreads threads
// Workspace: keys [T, max_context] of 4 bytes. Large T goes in parts: every token is for itself.
#pragma once

namespace sinter::gpu {

constexpr int kIndexerThreads = 128;
constexpr int kIndexerRows = 128;  // cache rows of a block, 32 a warp
constexpr int kTopkThreads = 1024;

struct IndexerParams {
  int heads, P, topk;
  long long max_context;
  long long page_table_stride;  // entries
};

#ifndef __CUDACC_RTC__  // for hosts: NVRTC takes no host functions
// q_parts: 1 for bf16 queries, 3 for float32.
constexpr int indexer_shared_bytes(int heads, int D, int q_parts) {
  return (heads + 15) / 16 * (q_parts * ((D + 31) / 32 * 32) * 16 * 2 + 16 * 4);
}
#endif

}  // namespace sinter::gpu
