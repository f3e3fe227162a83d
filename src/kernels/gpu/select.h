// Exact selection of the k-th largest of many 32-bit keys by one block: three passes of 11, 11 and 10 bits
// over histograms. Weights are integers, so their sums do not depend on the order of the additions.
#pragma once

#include "gpu/warp.h"

namespace sinter::gpu {

constexpr int kSelectBins = 2048;
constexpr int kMaxWarps = 32;

struct SelectShared {
  U64 bins[kSelectBins];
  U64 scratch[kMaxWarps];
  U64 above;  // weight of the bins over the chosen one
  U32 digit;
};

struct Selected {
  U32 key;
  U64 above;  // weight of the keys over it
};

// The key at which the weight of all keys from the largest down to it, itself included, first reaches
// `target`; the caller knows that it is reached. weight(i) counts keys[i], 0: not in the choice.
template <typename Weight>
SINTER_DEVICE Selected select_key(const U32* keys, I64 count, U64 target, const Weight& weight,
                                  SelectShared& shared) {
  U32 prefix = 0;
  U64 above = 0;
  int shift = 32;
  for (int pass = 0; pass < 3; ++pass) {
    const int width = pass == 2 ? 10 : 11;
    for (int bin = thread_idx(); bin < kSelectBins; bin += num_threads()) shared.bins[bin] = 0;
    sync_block();
    for (I64 i = thread_idx(); i < count; i += num_threads()) {
      const U32 key = keys[i];
      // Shifts by 32 are undefined: the first pass takes all.
      if (pass != 0 && key >> shift != prefix) continue;
      const U64 w = weight(i);
      if (w != 0) add_shared(&shared.bins[key >> (shift - width) & ((1u << width) - 1)], w);
    }
    sync_block();
    shift -= width;
    // Threads take the bins from the largest down, neighbours together.
    const int per_thread = ceil_div(kSelectBins, num_threads());
    const int first = kSelectBins - 1 - thread_idx() * per_thread;
    U64 own = 0;
    for (int j = 0; j < per_thread && first - j >= 0; ++j) own += shared.bins[first - j];
    U64 total;
    U64 running = above + block_sum_before(own, shared.scratch, &total);
    if (running < target && running + own >= target) {
      for (int j = 0; j < per_thread && first - j >= 0; ++j) {
        const U64 w = shared.bins[first - j];
        if (running < target && running + w >= target) {
          shared.digit = static_cast<U32>(first - j);
          shared.above = running;
        }
        running += w;
      }
    }
    sync_block();
    prefix = prefix << width | shared.digit;
    above = shared.above;
    sync_block();
  }
  return {prefix, above};
}

// Position of the `rank`-th (from 0) i, ascending, with is_member(i). There are more than `rank`.
template <typename IsMember>
SINTER_DEVICE I64 find_member(I64 count, U64 rank, const IsMember& is_member, SelectShared& shared) {
  // Each warp has a stretch of its own; the one that holds the rank looks through it again.
  const I64 stretch = ceil_div<I64>(ceil_div<I64>(count, num_warps()), kWarp) * kWarp;
  const I64 begin = warp_idx() * stretch, end = min_of(begin + stretch, count);
  U64 num_members = 0;
  for (I64 i = begin + lane_idx(); i - lane_idx() < end; i += kWarp)
    num_members += static_cast<U64>(count_bits(ballot(i < end && is_member(i))));
  U64 total;
  sync_block();
  const U64 before = block_sum_before<U64>(lane_idx() == kWarp - 1 ? num_members : 0, shared.scratch, &total);
  // Only the last lane's sum holds its warp's own members besides those before.
  U64 running = shuffle(before, 0);
  if (running <= rank && rank < running + num_members) {
    for (I64 i = begin + lane_idx(); i - lane_idx() < end; i += kWarp) {
      const bool is_one = i < end && is_member(i);
      const U32 lanes = ballot(is_one);
      if (is_one && running + static_cast<U64>(count_bits(lanes & lanes_below())) == rank)
        shared.above = static_cast<U64>(i);
      running += static_cast<U64>(count_bits(lanes));
    }
  }
  sync_block();
  const I64 found = static_cast<I64>(shared.above);
  sync_block();
  return found;
}

}  // namespace sinter::gpu
