// ops::MlaAttentionProblem, dense or over an index list. SINTER_C, SINTER_R: C and R; SINTER_Q, SINTER_CACHE:
// float or Bf16; SINTER_GROUPS: tiles of 16 heads of a block.
//
// The four warps of a tile share out the elements of a row: each adds its part of the scores, all four see
// the sums and keep the same softmax, and each has its own columns of the result.
#include "gpu/attention.h"

namespace sinter::gpu {

// q_latent [T, Q, C], q_pe [T, Q, R], cache [num_pages, P, C + R], page_table [B, max_pages], seq_idx [T],
// positions [T], indices [T, index_topk] or null, y [T, Q, C]; sums and states: see attention_params.h.
SINTER_KERNEL(128 * SINTER_GROUPS)
mla_attention(const SINTER_Q* q_latent, const SINTER_Q* q_pe, const SINTER_CACHE* cache,
              const int* page_table, const int* seq_idx, const int* positions, const int* indices,
              SINTER_Q* y, float* all_sums, float* all_states, MlaAttentionParams p) {
  constexpr int kWidth = SINTER_C + SINTER_R, kWarps = 4;
  constexpr int kChunks = (kWidth + 31) / 32, kValueChunks = ((SINTER_C + 63) / 64 + kWarps - 1) / kWarps;
  constexpr int kQueryLines = kPartsOf<SINTER_Q> * kChunks * 2 * kWarp;
  constexpr int kScores = kContextStep / 8 * kWarp;  // lines of one warp's scores
  SINTER_DYNAMIC_SHARED(shared);
  begin_kernel();
  const int group = warp_idx() / kWarps, warp = warp_idx() % kWarps;
  const I64 t = block_x();
  const int h0 = (block_y() * SINTER_GROUPS + group) * 16;
  Line* queries = reinterpret_cast<Line*>(shared) + group * (kQueryLines + 2 * kWarps * kScores);
  Line* all_scores = queries + kQueryLines;  // [2, kWarps, kContextStep / 8, lane]
  put_queries<SINTER_Q>(queries, kChunks * 32, thread_idx() % 128, 128, [&](int row, int i) {
    const int head = h0 + row;
    if (head >= p.Q || i >= kWidth) return 0.0f;
    return i < SINTER_C ? load(q_latent + t * p.latent_stride_token + head * p.latent_stride_head, i)
                        : load(q_pe + t * p.pe_stride_token + head * p.pe_stride_head, i - SINTER_C);
  });
  sync_block();

  const bool aligned = is_aligned(cache, kWidth * static_cast<int>(sizeof(SINTER_CACHE)));
  const int last_position = positions[t];
  const int* pages = page_table + seq_idx[t] * p.page_table_stride;
  const int* named = p.index_topk > 0 ? indices + t * p.index_topk : nullptr;
  const int begin = block_z() * p.split_rows;
  const int end = min_of(begin + p.split_rows, named == nullptr ? last_position + 1 : p.index_topk);
  SoftmaxState state;
  float sums[kValueChunks][8][4] = {};
  int buffer = 0;
  for (int i0 = begin; i0 < end; i0 += kContextStep) {
    ContextRows rows;
    rows.find(pages, p.P, named, i0, end);
    if (rows.is_empty()) continue;  // in all warps alike
    const auto row_of = [&](int i) {
      const I64 row = shuffle(rows.row, i);
      return row < 0 ? nullptr : cache + row * kWidth;
    };
    const SINTER_CACHE* keys[kContextStep / 8];
    SINTER_UNROLL
    for (int i = 0; i < kContextStep / 8; ++i) keys[i] = row_of(8 * i + lane_idx() / 4);
    Scores scores = {};
    for (int chunk = warp; chunk < kChunks; chunk += kWarps)
      add_scores<SINTER_Q>(queries + chunk * 2 * kWarp, kChunks * 2 * kWarp, chunk, kWidth, aligned, keys,
                           scores);
    Line* exchanged = all_scores + buffer * kWarps * kScores;
    buffer = 1 - buffer;  // read until the next barrier, so the next step writes the other one
    SINTER_UNROLL
    for (int i = 0; i < kContextStep / 8; ++i)
      exchanged[warp * kScores + i * kWarp + lane_idx()] = {
          {bits_of(scores[i][0]), bits_of(scores[i][1]), bits_of(scores[i][2]), bits_of(scores[i][3])}};
    sync_block();
    SINTER_UNROLL
    for (int i = 0; i < kContextStep / 8; ++i) {
      float total[4] = {};
      SINTER_UNROLL
      for (int w = 0; w < kWarps; ++w) {
        const Line part = exchanged[w * kScores + i * kWarp + lane_idx()];
        SINTER_UNROLL
        for (int j = 0; j < 4; ++j) total[j] += float_of(part.word[j]);
      }
      SINTER_UNROLL
      for (int j = 0; j < 4; ++j) {
        const int position = shuffle(rows.position, 8 * i + lane_idx() % 4 * 2 + j % 2);
        scores[i][j] = position >= 0 && position <= last_position ? total[j] * p.scale : -infinity();
      }
    }
    float rescale[2];
    state.update(scores, rescale);
    rescale_sums(sums, rescale);
    add_values<SINTER_Q, SINTER_CACHE>(scores, warp * kValueChunks * 64, SINTER_C, aligned, row_of, sums);
  }

  SINTER_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int head = h0 + lane_idx() / 4 + 8 * half;
    if (head >= p.Q) continue;
    const I64 item = t * p.Q + head;
    const float mass = state.mass[half];
    SINTER_UNROLL
    for (int chunk = 0; chunk < kValueChunks; ++chunk) SINTER_UNROLL
    for (int j = 0; j < 8; ++j) SINTER_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int column = (warp * kValueChunks + chunk) * 64 + value_column(j, i);
      if (column >= SINTER_C) continue;
      const float sum = sums[chunk][j][2 * half + i];
      if (p.num_splits == 1)
        store(y + item * SINTER_C, column, mass == 0 ? 0 : sum / mass);
      else
        all_sums[(item * p.num_splits + block_z()) * SINTER_C + column] = sum;
    }
    if (p.num_splits > 1 && warp == 0 && lane_idx() % 4 == 0) {
      float* states = all_states + (item * p.num_splits + block_z()) * 2;
      states[0] = state.max[half];
      states[1] = mass;
    }
  }
}

}  // namespace sinter::gpu
