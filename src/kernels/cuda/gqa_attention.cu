// ops::GqaAttentionProblem, dense or over an index list. SINTER_D, SINTER_DV: D and Dv; SINTER_Q,
// SINTER_CACHE: float or Bf16.
#include "gpu/attention.h"

namespace sinter::gpu {

// q [T, Q, D], k_cache [num_pages, P, G, D], v_cache [num_pages, P, G, Dv], page_table [B, max_pages],
// seq_idx [T], positions [T], indices [T, index_topk] or null, y [T, Q, Dv]; sums and states: see
// attention_params.h, null with one split.
SINTER_KERNEL(kGqaThreads)
gqa_attention(const SINTER_Q* q, const SINTER_CACHE* k_cache, const SINTER_CACHE* v_cache,
              const int* page_table, const int* seq_idx, const int* positions, const int* indices,
              SINTER_Q* y, float* all_sums, float* all_states, GqaAttentionParams p) {
  constexpr int kChunks = (SINTER_D + 31) / 32, kValueChunks = (SINTER_DV + 63) / 64;
  constexpr int kQueryLines = kPartsOf<SINTER_Q> * kChunks * 2 * kWarp;  // of a tile of rows
  constexpr int kSumsOfWarp = 16 * (kValueChunks * 64 + 2);
  SINTER_DYNAMIC_SHARED(shared);
  begin_kernel();
  const int context_warps = num_warps() / p.row_warps;
  const int tile = warp_idx() / context_warps, context_warp = warp_idx() % context_warps;
  const int t0 = (block_x() * p.row_warps + tile) * p.tile_tokens;
  const int head_tiles = ceil_div(p.Q / p.G, p.tile_heads);
  const int group = block_y() / head_tiles;
  const int h0 = block_y() % head_tiles * p.tile_heads;  // within the group
  const int num_heads = min_of(p.tile_heads, p.Q / p.G - h0);
  const int num_tokens = max_of(min_of(p.tile_tokens, p.T - t0), 0);
  const auto token_of = [&](int row) { return row / p.tile_heads; };  // in the tile
  const auto head_of = [&](int row) { return group * (p.Q / p.G) + h0 + row % p.tile_heads; };
  const auto is_row = [&](int row) { return token_of(row) < num_tokens && row % p.tile_heads < num_heads; };

  Line* queries = reinterpret_cast<Line*>(shared) + tile * kQueryLines;
  put_queries<SINTER_Q>(
      queries, kChunks * 32, context_warp * kWarp + lane_idx(), context_warps * kWarp, [&](int row, int i) {
        if (i >= SINTER_D || !is_row(row)) return 0.0f;
        return load(q + (t0 + token_of(row)) * p.q_stride_token + head_of(row) * p.q_stride_head, i);
      });
  sync_block();

  const bool k_aligned = is_aligned(k_cache, SINTER_D * static_cast<int>(sizeof(SINTER_CACHE)));
  const bool v_aligned = is_aligned(v_cache, SINTER_DV * static_cast<int>(sizeof(SINTER_CACHE)));
  SoftmaxState state;
  float sums[kValueChunks][8][4] = {};
  // Tokens of a tile mostly belong to one sequence; where not, each run of them has its turn.
  for (int first = 0, last; first < num_tokens; first = last) {
    const int seq = seq_idx[t0 + first];
    int num_visible = 0;
    for (last = first; last < num_tokens && seq_idx[t0 + last] == seq; ++last)
      num_visible = max_of(num_visible, positions[t0 + last] + 1);
    int last_position[2];  // that rows g and g + 8 see
    SINTER_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int row = lane_idx() / 4 + 8 * half, token = token_of(row);
      last_position[half] = is_row(row) && token >= first && token < last ? positions[t0 + token] : -1;
    }
    const int* pages = page_table + seq * p.page_table_stride;
    const int* named = p.index_topk > 0 ? indices + static_cast<I64>(t0 + first) * p.index_topk : nullptr;
    const int begin = block_z() * p.split_rows;
    const int end = min_of(begin + p.split_rows, named == nullptr ? num_visible : p.index_topk);
    for (int i0 = begin + context_warp * kContextStep; i0 < end; i0 += context_warps * kContextStep) {
      ContextRows rows;
      rows.find(pages, p.P, named, i0, end);
      if (rows.is_empty()) continue;
      Scores scores = {};
      const SINTER_CACHE* keys[kContextStep / 8];
      SINTER_UNROLL
      for (int i = 0; i < kContextStep / 8; ++i) {
        const I64 row = shuffle(rows.row, 8 * i + lane_idx() / 4);
        keys[i] = row < 0 ? nullptr : k_cache + (row * p.G + group) * SINTER_D;
      }
      SINTER_NO_UNROLL  // two at once spill on sm_100 and later at D = 256
          for (int chunk = 0; chunk < kChunks; ++chunk) add_scores<SINTER_Q>(
              queries + chunk * 2 * kWarp, kChunks * 2 * kWarp, chunk, SINTER_D, k_aligned, keys, scores);
      SINTER_UNROLL
      for (int i = 0; i < kContextStep / 8; ++i) SINTER_UNROLL
      for (int j = 0; j < 4; ++j) {
        const int position = shuffle(rows.position, 8 * i + lane_idx() % 4 * 2 + j % 2);
        const bool is_seen = position >= 0 && position <= last_position[j / 2];
        scores[i][j] = is_seen ? scores[i][j] * p.scale : -infinity();
      }
      float rescale[2];
      state.update(scores, rescale);
      const auto value = [&](int i) {
        const I64 row = shuffle(rows.row, i);
        return row < 0 ? nullptr : v_cache + (row * p.G + group) * SINTER_DV;
      };
      rescale_sums(sums, rescale);
      add_values<SINTER_Q, SINTER_CACHE>(scores, 0, SINTER_DV, v_aligned, value, sums);
    }
  }

  // The warps along the context, added in their order.
  sync_block();
  float* all = reinterpret_cast<float*>(shared);
  float* own = all + warp_idx() * kSumsOfWarp;
  SINTER_UNROLL
  for (int chunk = 0; chunk < kValueChunks; ++chunk) SINTER_UNROLL
  for (int j = 0; j < 8; ++j) SINTER_UNROLL
  for (int i = 0; i < 4; ++i)
    own[(lane_idx() / 4 + i / 2 * 8) * kValueChunks * 64 + chunk * 64 + value_column(j, i)] =
        sums[chunk][j][i];
  float* own_states = own + 16 * kValueChunks * 64;
  if (lane_idx() % 4 == 0)
    for (int half = 0; half < 2; ++half) {
      own_states[2 * (lane_idx() / 4 + 8 * half)] = state.max[half];
      own_states[2 * (lane_idx() / 4 + 8 * half) + 1] = state.mass[half];
    }
  sync_block();
  const float* tile_sums = all + tile * context_warps * kSumsOfWarp;
  for (int row = context_warp; row < 16; row += context_warps) {
    if (!is_row(row)) continue;
    float largest = -infinity();
    for (int w = 0; w < context_warps; ++w)
      largest = max_of(largest, tile_sums[w * kSumsOfWarp + 16 * kValueChunks * 64 + 2 * row]);
    const auto add = [&](int offset) {
      float sum = 0;
      for (int w = 0; w < context_warps; ++w) {
        const float max = tile_sums[w * kSumsOfWarp + 16 * kValueChunks * 64 + 2 * row];
        if (max == -infinity()) continue;
        sum += (max == largest ? 1 : expf(max - largest)) * tile_sums[w * kSumsOfWarp + offset];
      }
      return sum;
    };
    const float mass = add(16 * kValueChunks * 64 + 2 * row + 1);
    const I64 item = static_cast<I64>(t0 + token_of(row)) * p.Q + head_of(row);
    for (int i = lane_idx(); i < SINTER_DV; i += kWarp) {
      const float sum = add(row * kValueChunks * 64 + i);
      if (p.num_splits == 1)
        store(y + item * SINTER_DV, i, mass == 0 ? 0 : sum / mass);
      else
        all_sums[(item * p.num_splits + block_z()) * SINTER_DV + i] = sum;
    }
    if (p.num_splits > 1 && lane_idx() == 0) {
      float* states = all_states + (item * p.num_splits + block_z()) * 2;
      states[0] = largest;
      states[1] = mass;
    }
  }
}

}  // namespace sinter::gpu
