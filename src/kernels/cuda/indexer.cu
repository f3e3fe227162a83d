// ops::IndexerProblem: scores of all rows a token sees, then the exact choice. SINTER_D: D; SINTER_Q,
// SINTER_CACHE: float or Bf16.
#include "gpu/attention.h"
#include "gpu/indexer_params.h"
#include "gpu/select.h"

namespace sinter::gpu {

// keys[t, p] ranks I[t, p]; q [T, heads, D], w [T, heads], k_cache [num_pages, P, D]
SINTER_KERNEL(kIndexerThreads)
indexer_scores(const SINTER_Q* q, const float* w, const SINTER_CACHE* k_cache, const int* page_table,
               const int* seq_idx, const int* positions, U32* keys, IndexerParams p) {
  constexpr int kChunks = (SINTER_D + 31) / 32;
  constexpr int kQueryLines = kPartsOf<SINTER_Q> * kChunks * 2 * kWarp;  // of 16 heads
  SINTER_DYNAMIC_SHARED(shared);
  begin_kernel();
  const I64 t = block_y();
  const int num_visible = positions[t] + 1;
  const int first_row = block_x() * kIndexerRows;
  // All rows are taken: their order does not matter.
  if (num_visible <= p.topk || first_row >= num_visible) return;
  const int head_tiles = ceil_div(p.heads, 16);
  Line* queries = reinterpret_cast<Line*>(shared);
  float* weights = reinterpret_cast<float*>(queries + head_tiles * kQueryLines);
  for (int tile = 0; tile < head_tiles; ++tile)
    put_queries<SINTER_Q>(queries + tile * kQueryLines, kChunks * 32, thread_idx(), num_threads(),
                          [&](int row, int i) {
                            const int head = tile * 16 + row;
                            if (head >= p.heads || i >= SINTER_D) return 0.0f;
                            return load(q + (t * p.heads + head) * SINTER_D, i);
                          });
  for (int head = thread_idx(); head < head_tiles * 16; head += num_threads())
    weights[head] = head < p.heads ? w[t * p.heads + head] : 0;
  sync_block();

  const int* pages = page_table + seq_idx[t] * p.page_table_stride;
  ContextRows rows;
  rows.find(pages, p.P, nullptr, first_row + warp_idx() * kContextStep, num_visible);
  if (rows.is_empty()) return;
  const bool aligned = is_aligned(k_cache, SINTER_D * static_cast<int>(sizeof(SINTER_CACHE)));
  const SINTER_CACHE* row_starts[kContextStep / 8];
  SINTER_UNROLL
  for (int i = 0; i < kContextStep / 8; ++i) {
    const I64 row = shuffle(rows.row, 8 * i + lane_idx() / 4);
    row_starts[i] = row < 0 ? nullptr : k_cache + row * SINTER_D;
  }
  float sums[kContextStep / 8][2] = {};  // of columns 2t, 2t + 1 over this lane's heads
  for (int tile = 0; tile < head_tiles; ++tile) {
    Scores scores = {};
    SINTER_UNROLL
    for (int chunk = 0; chunk < kChunks; ++chunk)
      add_scores<SINTER_Q>(queries + tile * kQueryLines + chunk * 2 * kWarp, kChunks * 2 * kWarp, chunk,
                           SINTER_D, aligned, row_starts, scores);
    SINTER_UNROLL
    for (int i = 0; i < kContextStep / 8; ++i) SINTER_UNROLL
    for (int j = 0; j < 4; ++j)
      sums[i][j % 2] += weights[tile * 16 + lane_idx() / 4 + j / 2 * 8] * max_of(scores[i][j], 0.0f);
  }
  SINTER_UNROLL
  for (int i = 0; i < kContextStep / 8; ++i) SINTER_UNROLL
  for (int j = 0; j < 2; ++j) {
    float sum = sums[i][j];
    for (int mask = 4; mask < kWarp; mask *= 2) sum += shuffle_xor(sum, mask);
    const int row = first_row + warp_idx() * kContextStep + 8 * i + lane_idx() % 4 * 2 + j;
    if (lane_idx() < 4 && row < num_visible) keys[t * p.max_context + row] = order_key(sum);
  }
}

// indices [T, topk]: the rows with the topk largest keys, ties to the lower row, ascending, then -1.
SINTER_KERNEL(kTopkThreads)
indexer_topk(const U32* keys, const int* positions, int* indices, IndexerParams p) {
  SINTER_SHARED(SelectShared, shared, 1);
  begin_kernel();
  const I64 t = block_x();
  const int num_visible = positions[t] + 1;
  indices += t * p.topk;
  if (num_visible <= p.topk) {
    for (int i = thread_idx(); i < p.topk; i += num_threads()) indices[i] = i < num_visible ? i : -1;
    return;
  }
  keys += t * p.max_context;
  const U64 topk = static_cast<U64>(p.topk);
  const Selected border = select_key(
      keys, num_visible, topk, [](I64) { return static_cast<U64>(1); }, shared[0]);
  const U32 num_ties = static_cast<U32>(topk - border.above);  // of the border's key that are taken

  // Each thread has neighbouring rows, so that a running sum over the threads is one over the rows. Both
  // counts fit in one number: ties in the upper half.
  constexpr int kRowsOfThread = 4;
  U32 ties = 0, taken = 0;
  for (int base = 0; base < num_visible; base += num_threads() * kRowsOfThread) {
    const int first = base + thread_idx() * kRowsOfThread;
    U32 key[kRowsOfThread];
    U64 own = 0;
    SINTER_UNROLL
    for (int i = 0; i < kRowsOfThread; ++i) {
      key[i] = first + i < num_visible ? keys[first + i] : 0;
      if (first + i >= num_visible) continue;
      own += static_cast<U64>(key[i] > border.key) + (static_cast<U64>(key[i] == border.key) << 32);
    }
    U64 all;
    const U64 before = block_sum_before(own, shared[0].scratch, &all);
    U32 larger = static_cast<U32>(before), equal = ties + static_cast<U32>(before >> 32);
    // Ties before this thread, taken ones only.
    U32 place = taken + larger + min_of(equal, num_ties) - min_of(ties, num_ties);
    SINTER_UNROLL
    for (int i = 0; i < kRowsOfThread; ++i) {
      if (first + i >= num_visible) continue;
      const bool is_tie = key[i] == border.key;
      if (key[i] > border.key || (is_tie && equal < num_ties)) indices[place++] = first + i;
      equal += is_tie;
    }
    const U32 ties_to = ties + static_cast<U32>(all >> 32);
    taken += static_cast<U32>(all) + min_of(ties_to, num_ties) - min_of(ties, num_ties);
    ties = ties_to;
  }
}

}  // namespace sinter::gpu
