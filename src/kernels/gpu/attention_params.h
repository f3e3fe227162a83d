// Numbers of cuda.gqa_attention, cuda.mla_attention and cuda.attention_merge.
//
// The context is cut into `num_splits` stretches of split_rows rows (entries of `indices` when sparse); with
// more than one every block leaves sums and the merge kernel adds them in the order of the stretches. The
// cut should follow from max_context (or index_topk) alone, so that results do not depend on the batch.
//
//   gqa_attention    grid (ceil(T / (tile_tokens * row_warps)), G * ceil(Q / G / tile_heads), num_splits),
//                    kGqaThreads threads, gqa_shared_bytes(...) of dynamic shared memory
//   mla_attention    grid (T, ceil(Q / (16 * SINTER_GROUPS)), num_splits), 128 * SINTER_GROUPS threads,
//                    mla_shared_bytes(...)
//   attention_merge  grid (T * Q), 128 threads; only when num_splits > 1
//
// Workspace when num_splits > 1: sums [T, Q, num_splits, Dv] and states [T, Q, num_splits, 2], float32.
#pragma once

namespace sinter::gpu {

constexpr int kGqaThreads = 128;
constexpr int kContextStep = 32;  // rows of a step; split_rows is a multiple of it

struct GqaAttentionParams {
  int T, Q, G, P;
  int index_topk;  // 0: dense
  float scale;
  // A warp's 16 rows are tile_tokens tokens x tile_heads heads of one group; 1 token when sparse.
  int tile_tokens, tile_heads;
  // Of a block's 4 warps: row_warps tiles of rows, each shared by 4 / row_warps warps along the context.
  int row_warps;
  int num_splits, split_rows;
  long long q_stride_token, q_stride_head;  // elements
  long long page_table_stride;              // entries
};

struct MlaAttentionParams {
  int T, Q, P;
  int index_topk;  // 0: dense
  float scale;
  int num_splits, split_rows;
  long long latent_stride_token, latent_stride_head, pe_stride_token, pe_stride_head;  // elements
  long long page_table_stride;                                                         // entries
};

struct AttentionMergeParams {
  int Dv, num_splits;
};

#ifndef __CUDACC_RTC__  // for hosts: NVRTC takes no host functions
// Heads and tokens of a warp's tile.
constexpr int gqa_tile_heads(int Q, int G) { return Q / G < 16 ? Q / G : 16; }
constexpr int gqa_tile_tokens(int Q, int G, int index_topk) {
  return index_topk > 0 ? 1 : 16 / gqa_tile_heads(Q, G);
}
// q_parts: 1 for bf16 queries, 3 for float32.
constexpr int gqa_shared_bytes(int D, int Dv, int row_warps, int q_parts) {
  const int queries = row_warps * q_parts * ((D + 31) / 32 * 32) * 16 * 2;
  const int sums = kGqaThreads / 32 * 16 * ((Dv + 63) / 64 * 64 + 2) * 4;
  return queries > sums ? queries : sums;
}
constexpr int mla_shared_bytes(int C, int R, int groups, int q_parts) {
  return groups * (q_parts * ((C + R + 31) / 32 * 32) * 16 * 2 + 2 * 4 * 16 * kContextStep * 4);
}
#endif

}  // namespace sinter::gpu
