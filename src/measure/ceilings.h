// What this machine can reach at best: read bandwidth of its memory, and where its cores are.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "measure/statistics.h"
#include "tensor/buffer.h"

namespace sinter::measure {

// Reads memory far larger than the caches, in whichever of a dozen patterns (streams a thread, prefetch hint
// and distance) is fastest here: the most that weights streamed by a kernel can reach. Compare a kernel with
// a sweep of the same minute.
class ReadSweep {
 public:
  // Tries every pattern twice.
  explicit ReadSweep(ThreadPool& pool, size_t size_bytes = size_t{1} << 30);

  std::string_view pattern() const;  // the one chosen: "t1 +9 KB"

  // Bytes per second of one sweep over everything by all threads of the pool.
  double run();
  Summary run_rounds(int num_rounds);

 private:
  using ReadFunction = uint64_t (*)(const std::byte*, size_t);
  ReadFunction read_ = nullptr;
  size_t pattern_idx_ = 0;
  ThreadPool& pool_;
  Buffer memory_;
  std::vector<uint64_t> sums_;  // keeps the reads alive
};

// Where a virtual machine's host runs workers 0 and 1 of a pool. It may move them at any time, and two
// threads read up to twice as fast from two dies as from one core, so every figure of more than one thread
// needs its placement, asked before and after.
enum class Placement : uint8_t {
  kOneThread,  // a pool of one: nothing to tell
  kTwoDies,    // cores that share no cache: a line's round trip takes over 150 ns
  kOneDie,     // two cores that share a cache: under 110 ns
  kOneCore,    // two hardware threads of one core: the same round trip, and half the arithmetic each
  kUnknown,    // in between, or disturbed
};
std::string_view name(Placement placement);

// Takes about a millisecond.
Placement find_placement(ThreadPool& pool);

}  // namespace sinter::measure
