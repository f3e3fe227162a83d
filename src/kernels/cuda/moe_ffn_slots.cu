// ops::MoeFfnProblem, what comes before and after the products: slots sorted by expert, and the sum over a
// token's experts. SINTER_Y: float or Bf16.
#include "gpu/moe_ffn_params.h"
#include "gpu/warp.h"

namespace sinter::gpu {

// A warp adds its slots begin .. end - 1 to the counts of their experts, in order; where `slots` is given the
// counts are places, and every slot is put at its own.
SINTER_DEVICE void count_slots(const int* ids, int begin, int end, int E, U32* counts, int* slots) {
  for (int base = begin; base < end; base += kWarp) {
    const int slot = base + lane_idx();
    int id = slot < end ? ids[slot] : -1;
    if (id >= E) id = -1;
    const U32 same = match(id);
    const U32 rank = static_cast<U32>(count_bits(same & lanes_below()));
    if (id >= 0 && slots != nullptr) slots[counts[id] + rank] = slot;
    sync_warp();
    if (id >= 0 && rank == 0) counts[id] += static_cast<U32>(count_bits(same));
    sync_warp();
  }
}

// ids [T, A] -> slots: slot numbers t * A + a by expert, ascending within one, empty ones left out;
// tiles and their number. One block; the order does not depend on timing.
SINTER_KERNEL(kSortThreads)
moe_sort_slots(const int* ids, int* slots, MoeTile* tiles, int* num_tiles, MoeFfnParams p) {
  SINTER_DYNAMIC_SHARED(shared);
  begin_kernel();
  const int S = p.T * p.A;
  U32* counts = reinterpret_cast<U32*>(shared);  // [kSortWarps, E], later: where they go
  U32* first = counts + kSortWarps * p.E;        // [E + 1]
  U32* first_tile = first + p.E + 1;             // [E + 1]
  for (int i = thread_idx(); i < kSortWarps * p.E; i += kSortThreads) counts[i] = 0;
  sync_block();

  // Every warp has a stretch of slots.
  const int stretch = ceil_div(ceil_div(S, kSortWarps), kWarp) * kWarp;
  const int begin = min_of(warp_idx() * stretch, S), end = min_of(begin + stretch, S);
  U32* own = counts + warp_idx() * p.E;
  count_slots(ids, begin, end, p.E, own, nullptr);
  sync_block();

  if (warp_idx() == 0) {
    U32 num_slots = 0, num_all_tiles = 0;
    for (int base = 0; base < p.E; base += kWarp) {
      const int e = base + lane_idx();
      U32 count = 0;
      if (e < p.E)
        for (int warp = 0; warp < kSortWarps; ++warp) count += counts[warp * p.E + e];
      const U32 count_tiles = ceil_div(count, static_cast<U32>(p.tile_slots));
      const U32 slots_to = num_slots + warp_running_sum(count);
      const U32 tiles_to = num_all_tiles + warp_running_sum(count_tiles);
      if (e < p.E) {
        first[e] = slots_to - count;
        first_tile[e] = tiles_to - count_tiles;
      }
      num_slots = shuffle(slots_to, kWarp - 1);
      num_all_tiles = shuffle(tiles_to, kWarp - 1);
    }
    if (lane_idx() == 0) {
      first[p.E] = num_slots;
      *num_tiles = static_cast<int>(num_all_tiles);
    }
  }
  sync_block();

  for (int e = thread_idx(); e < p.E; e += kSortThreads) {
    U32 next = first[e];
    for (int warp = 0; warp < kSortWarps; ++warp) {
      const U32 count = counts[warp * p.E + e];
      counts[warp * p.E + e] = next;
      next += count;
    }
    MoeTile* tile = tiles + first_tile[e];
    for (int from = static_cast<int>(first[e]); from < static_cast<int>(next); from += p.tile_slots)
      *tile++ = {e, from, min_of(p.tile_slots, static_cast<int>(next) - from)};
  }
  sync_block();
  count_slots(ids, begin, end, p.E, own, slots);
}

// y[t] = sum over a of weights[t, a] * outputs[t * A + a], in the order of a; outputs [S, H], y [T, H].
SINTER_KERNEL(kCombineColumns)
moe_combine(const int* ids, const float* weights, const float* outputs, SINTER_Y* y, MoeFfnParams p) {
  begin_kernel();
  const int num_parts = ceil_div(p.H, kCombineColumns);
  const I64 t = block_x() / num_parts;
  const int h = block_x() % num_parts * kCombineColumns + thread_idx();
  if (h >= p.H) return;
  float sum = 0;
  for (int a = 0; a < p.A; ++a) {
    const I64 slot = t * p.A + a;
    // An empty slot's output was never written.
    if (ids[slot] >= 0 && ids[slot] < p.E) sum += weights[slot] * outputs[slot * p.H + h];
  }
  if (p.accumulate) sum += load(y + t * p.H, h);
  store(y + t * p.H, h, sum);
}

}  // namespace sinter::gpu
