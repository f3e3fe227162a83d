#include "measure/ceilings.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "measure/timer.h"

namespace sinter::measure {
namespace {

constexpr size_t kGrain = size_t{2} << 20;

// Adds up memory as kStreams ascending streams of equal length, prefetching kDistance bytes ahead of each; no
// hint: left to the hardware. Loads of 16 bytes do for all: a line takes two cycles, memory ten or more.
constexpr int kNoHint = -1, kNta = 0, kT1 = 2, kT0 = 3;  // localities of __builtin_prefetch
template <int kHint, size_t kDistance, size_t kStreams>
uint64_t read_all(const std::byte* data, size_t size_bytes) {
  constexpr size_t kLines = 8 / kStreams;  // of a stream, an iteration
  const size_t stream_bytes = size_bytes / kStreams;
  __m128i sums[8] = {};
  for (size_t i = 0; i + kLines * 64 <= stream_bytes; i += kLines * 64)
#pragma GCC unroll 8
    for (size_t line = 0; line < 8; ++line) {
      const std::byte* at = data + line / kLines * stream_bytes + i + line % kLines * 64;
      if constexpr (kHint != kNoHint) __builtin_prefetch(at + kDistance, /*write=*/0, kHint);
      const auto* vectors = reinterpret_cast<const __m128i*>(at);
      for (size_t part = 0; part < 4; ++part)
        sums[line] = _mm_add_epi64(sums[line], _mm_loadu_si128(vectors + part));
    }
  uint64_t words[16], sum = 0;
  std::memcpy(words, sums, sizeof sums);
  for (const uint64_t word : words) sum += word;
  return sum;
}

struct Pattern {
  std::string_view name;
  uint64_t (*read)(const std::byte*, size_t);
};

// Which reads fastest differs between makers and between quiet and busy machines: past the caches on a Zen 4,
// into L2 on a Xeon.
constexpr Pattern kPatterns[] = {
    {"no prefetch", read_all<kNoHint, 0, 1>},
    {"nta +4 KB", read_all<kNta, 4096, 1>},
    {"t0 +4 KB", read_all<kT0, 4096, 1>},
    {"t1 +4 KB", read_all<kT1, 4096, 1>},
    {"t0 +9 KB", read_all<kT0, 9216, 1>},
    {"t1 +9 KB", read_all<kT1, 9216, 1>},
    {"2 streams, no prefetch", read_all<kNoHint, 0, 2>},
    {"2 streams, t1 +4 KB", read_all<kT1, 4096, 2>},
    {"2 streams, t1 +9 KB", read_all<kT1, 9216, 2>},
    {"4 streams, no prefetch", read_all<kNoHint, 0, 4>},
    {"4 streams, t1 +4 KB", read_all<kT1, 4096, 4>},
};

// Microseconds of arithmetic that fills a core's multipliers when it has them alone.
double multiply_us() {
  __m128 products[8];
  std::fill_n(products, 8, _mm_set1_ps(1.0f));
  const __m128 factor = _mm_set1_ps(1.0000001f);
  const Stopwatch stopwatch;
  for (int i = 0; i < 20000; ++i)
#pragma GCC unroll 8
    for (int chain = 0; chain < 8; ++chain) {
      products[chain] = _mm_mul_ps(products[chain], factor);
      asm volatile("" : "+x"(products[chain]));  // the loop must be run, not computed
    }
  return stopwatch.elapsed_us();
}

// Round trip of a cache line between two workers, in nanoseconds; infinity when they do not both run, as on a
// busy machine.
double round_trip_ns(ThreadPool& pool) {
  constexpr int kTrips = 1500;
  constexpr double kMaxUs = 5000;
  constexpr int kGivenUp = -1;
  alignas(64) std::atomic<int> turn{0};
  double ns = std::numeric_limits<double>::infinity();
  pool.run([&](int worker_idx) {
    pool.barrier();
    if (worker_idx > 1) return;
    const Stopwatch stopwatch;
    for (int trip = 0, spins = 0; trip < kTrips;) {
      const int now = turn.load(std::memory_order_acquire);
      if (now == worker_idx) {
        turn.store(1 - worker_idx, std::memory_order_release);
        ++trip;
        continue;
      }
      _mm_pause();
      // Reading the clock takes as long as a trip.
      if (++spins % 256 == 0 && stopwatch.elapsed_us() > kMaxUs)
        turn.store(kGivenUp, std::memory_order_release);
      if (now == kGivenUp) return;
    }
    if (worker_idx == 1) ns = stopwatch.elapsed_us() * 1000 / kTrips;
  });
  return ns;
}

// Time of the arithmetic on workers 0 and 1 at once over its time on worker 0 alone: 2 on a shared core.
double contention(ThreadPool& pool) {
  double together[2] = {}, alone = 0;
  pool.run([&](int worker_idx) {
    pool.barrier();
    if (worker_idx < 2) together[worker_idx] = multiply_us();
    pool.barrier();
    if (worker_idx == 0) alone = multiply_us();
  });
  return std::max(together[0], together[1]) / alone;
}

}  // namespace

ReadSweep::ReadSweep(ThreadPool& pool, size_t size_bytes)
    : pool_(pool),
      memory_(Buffer::host((size_bytes + kGrain - 1) / kGrain * kGrain)),
      sums_(static_cast<size_t>(pool.num_threads())) {
  // Untouched pages would all be the one zero page, which stays in the cache.
  pool_.run([&](int worker_idx) {
    const auto [begin, end] = pool_.part(worker_idx, static_cast<int64_t>(memory_.size_bytes()), kGrain);
    std::memset(memory_.data() + begin, 1, static_cast<size_t>(end - begin));
  });
  // Interleaved, so that a busy moment does not decide.
  double best = 0, rates[std::size(kPatterns)] = {};
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i < std::size(kPatterns); ++i) {
      read_ = kPatterns[i].read;
      rates[i] = std::max(rates[i], run());
    }
  for (size_t i = 0; i < std::size(kPatterns); ++i) {
    if (rates[i] <= best) continue;
    best = rates[i];
    pattern_idx_ = i;
  }
  read_ = kPatterns[pattern_idx_].read;
}

std::string_view ReadSweep::pattern() const { return kPatterns[pattern_idx_].name; }

double ReadSweep::run() {
  const Stopwatch stopwatch;
  pool_.run([&](int worker_idx) {
    const auto [begin, end] = pool_.part(worker_idx, static_cast<int64_t>(memory_.size_bytes()), kGrain);
    sums_[static_cast<size_t>(worker_idx)] = read_(memory_.data() + begin, static_cast<size_t>(end - begin));
  });
  return static_cast<double>(memory_.size_bytes()) / stopwatch.elapsed_us() * 1e6;
}

Summary ReadSweep::run_rounds(int num_rounds) {
  std::vector<double> samples;
  samples.reserve(static_cast<size_t>(num_rounds));
  for (int i = 0; i < num_rounds; ++i) samples.push_back(run());
  return summarize(samples);
}

std::string_view name(Placement placement) {
  switch (placement) {
    case Placement::kOneThread: return "one thread";
    case Placement::kTwoDies: return "two dies";
    case Placement::kOneDie: return "one die";
    case Placement::kOneCore: return "one core";
    case Placement::kUnknown: return "unknown";
  }
  return "?";
}

Placement find_placement(ThreadPool& pool) {
  if (pool.num_threads() < 2) return Placement::kOneThread;
  // The better of two: an interrupt only ever adds.
  const double ns = std::min(round_trip_ns(pool), round_trip_ns(pool));
  if (std::isinf(ns)) return Placement::kUnknown;
  if (ns > 150) return Placement::kTwoDies;
  if (ns > 110) return Placement::kUnknown;
  return std::min(contention(pool), contention(pool)) > 1.5 ? Placement::kOneCore : Placement::kOneDie;
}

}  // namespace sinter::measure
