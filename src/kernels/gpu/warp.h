// Warps and blocks working together. Sums have one fixed order: results do not change from run to run.
// Every function is called by all threads of its warp (block).
#pragma once

#include "gpu/numerics.h"

namespace sinter::gpu {

#if defined(__CUDACC__)
constexpr U32 kAllLanes = 0xffffffffu;
SINTER_DEVICE void sync_block() { __syncthreads(); }
SINTER_DEVICE void sync_warp() { __syncwarp(); }
template <typename T>
SINTER_DEVICE T shuffle(T value, int lane) {
  return __shfl_sync(kAllLanes, value, lane);
}
template <typename T>
SINTER_DEVICE T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(kAllLanes, value, mask);
}
template <typename T>
SINTER_DEVICE T shuffle_up(T value, int distance) {  // lanes under `distance` keep theirs
  return __shfl_up_sync(kAllLanes, value, static_cast<U32>(distance));
}
SINTER_DEVICE U32 ballot(bool is_set) { return __ballot_sync(kAllLanes, is_set); }
// The lanes whose value equals this lane's.
SINTER_DEVICE U32 match(int value) { return __match_any_sync(kAllLanes, value); }
SINTER_DEVICE int count_bits(U32 bits) { return __popc(bits); }
// Integers only: their sum does not depend on the order.
SINTER_DEVICE void add_shared(U32* sum, U32 value) { atomicAdd(sum, value); }
SINTER_DEVICE void add_shared(U64* sum, U64 value) { atomicAdd(sum, value); }
#else
inline void sync_block() { simt::sync_block(); }
inline void sync_warp() { simt::gather(0); }
template <typename T>
inline T shuffle(T value, int lane) {
  return simt::gather(value)[lane];
}
template <typename T>
inline T shuffle_xor(T value, int mask) {
  return simt::gather(value)[lane_idx() ^ mask];
}
template <typename T>
inline T shuffle_up(T value, int distance) {
  return simt::gather(value)[lane_idx() < distance ? lane_idx() : lane_idx() - distance];
}
inline U32 match(int value) {
  const int* values = simt::gather(value);
  U32 lanes = 0;
  for (int i = 0; i < kWarp; ++i) lanes |= static_cast<U32>(values[i] == value) << i;
  return lanes;
}
inline U32 ballot(bool is_set) {
  const bool* values = simt::gather(is_set);
  U32 lanes = 0;
  for (int i = 0; i < kWarp; ++i) lanes |= static_cast<U32>(values[i]) << i;
  return lanes;
}
inline int count_bits(U32 bits) { return __builtin_popcount(bits); }
inline void add_shared(U32* sum, U32 value) { *sum += value; }
inline void add_shared(U64* sum, U64 value) { *sum += value; }
#endif

SINTER_DEVICE U32 lanes_below() { return (1u << lane_idx()) - 1; }

// On every lane.
SINTER_DEVICE float warp_sum(float value) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
  return value;
}
template <typename T>
SINTER_DEVICE T warp_max(T value) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) value = max_of(value, shuffle_xor(value, mask));
  return value;
}
// Sum over the lanes up to and with this one.
template <typename T>
SINTER_DEVICE T warp_running_sum(T value) {
  for (int distance = 1; distance < kWarp; distance *= 2) {
    const T before = shuffle_up(value, distance);
    if (lane_idx() >= distance) value += before;
  }
  return value;
}

// On every thread. `scratch` is shared: one element a warp, 32 at most.
template <typename T>
SINTER_DEVICE T block_sum(T value, T* scratch) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
  sync_block();  // `scratch` may still be read from the last call
  if (lane_idx() == 0) scratch[warp_idx()] = value;
  sync_block();
  T sum = scratch[0];
  for (int i = 1; i < num_warps(); ++i) sum += scratch[i];
  return sum;
}
template <typename T>
SINTER_DEVICE T block_max(T value, T* scratch) {
  value = warp_max(value);
  sync_block();
  if (lane_idx() == 0) scratch[warp_idx()] = value;
  sync_block();
  T largest = scratch[0];
  for (int i = 1; i < num_warps(); ++i) largest = max_of(largest, scratch[i]);
  return largest;
}
// Sum over the threads before this one; `total` gets that of all.
template <typename T>
SINTER_DEVICE T block_sum_before(T value, T* scratch, T* total) {
  const T running = warp_running_sum(value);
  sync_block();
  if (lane_idx() == kWarp - 1) scratch[warp_idx()] = running;
  sync_block();
  T before = running - value;
  T sum = 0;
  for (int i = 0; i < num_warps(); ++i) {
    if (i < warp_idx()) before += scratch[i];
    sum += scratch[i];
  }
  *total = sum;
  return before;
}

}  // namespace sinter::gpu
