// Numbers and workspace of cuda.moe_ffn. In this order, S = T * A, tiles of kTileSlots slots:
//   moe_sort_slots       grid (1), kSortThreads threads, moe_sort_shared_bytes(E) of dynamic shared memory
//   moe_gate_up_decode   grid (ceil(I / 16), max_tiles), row_product_threads(H, lane_k) threads
//   moe_down_decode      grid (ceil(H / 16), max_tiles), row_product_threads(I, lane_k) threads
//     or, for many slots an expert,
//   moe_gate_up_prefill  grid (ceil(I / 64), max_tiles), kTileThreads, tile_shared_bytes(SINTER_COLUMNS)
//   moe_down_prefill     grid (ceil(H / 128), max_tiles), kTileThreads, tile_shared_bytes(SINTER_COLUMNS)
//   moe_combine          grid (T * ceil(H / kCombineColumns)), kCombineColumns threads
// tile_slots is 8 * SINTER_TILES for decode, SINTER_COLUMNS for prefill. The grids depend on T alone, so a
// captured graph stays valid when the routing changes.
#pragma once

namespace sinter::gpu {

constexpr int kSortThreads = 512;
constexpr int kSortWarps = kSortThreads / 32;
constexpr int kMaxExperts = 1024;
constexpr int kCombineColumns = 256;

struct MoeFfnParams {
  int T, H, I, E, A;
  int tile_slots;
  int accumulate;      // add to what y holds
  long long x_stride;  // elements
};

// Slots begin .. begin + count - 1 of the sorted list, all of one expert.
struct MoeTile {
  int expert, begin, count;
};

#ifndef __CUDACC_RTC__  // for hosts: NVRTC takes no host functions
constexpr int moe_sort_shared_bytes(int E) { return (kSortWarps + 2) * (E + 1) * 4; }

// Tiles at most, whatever the routing.
constexpr long long moe_max_tiles(long long T, long long A, long long E, long long tile_slots) {
  const long long S = T * A;
  const long long bound = S / tile_slots + E;
  return S < bound ? S : bound;
}
#endif

}  // namespace sinter::gpu
