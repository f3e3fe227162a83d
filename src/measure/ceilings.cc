#include "measure/ceilings.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "measure/timer.h"

namespace sinter::measure {
namespace {

constexpr size_t kStep = 512;               // bytes an iteration: eight cache lines
constexpr size_t kPrefetchDistance = 4096;  // the best of those tried on an EPYC of the Zen 4 kind
constexpr size_t kGrain = size_t{2} << 20;

uint64_t fold(const uint64_t* words, size_t count) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += words[i];
  return sum;
}

__attribute__((target("avx512f"))) uint64_t read_avx512(const std::byte* data, size_t size_bytes) {
  __m512i sums[8] = {};
  for (size_t i = 0; i + kStep <= size_bytes; i += kStep)
#pragma GCC unroll 8
    for (size_t line = 0; line < 8; ++line) {
      _mm_prefetch(reinterpret_cast<const char*>(data) + i + line * 64 + kPrefetchDistance, _MM_HINT_NTA);
      sums[line] = _mm512_add_epi64(sums[line], _mm512_loadu_si512(data + i + line * 64));
    }
  uint64_t words[64];
  std::memcpy(words, sums, sizeof sums);
  return fold(words, 64);
}

__attribute__((target("avx2"))) uint64_t read_avx2(const std::byte* data, size_t size_bytes) {
  __m256i sums[8] = {};
  for (size_t i = 0; i + kStep <= size_bytes; i += kStep)
#pragma GCC unroll 8
    for (size_t line = 0; line < 8; ++line) {
      const auto* vectors = reinterpret_cast<const __m256i*>(data + i + line * 64);
      _mm_prefetch(reinterpret_cast<const char*>(vectors) + kPrefetchDistance, _MM_HINT_NTA);
      sums[line] = _mm256_add_epi64(sums[line], _mm256_loadu_si256(vectors));
      sums[line] = _mm256_add_epi64(sums[line], _mm256_loadu_si256(vectors + 1));
    }
  uint64_t words[32];
  std::memcpy(words, sums, sizeof sums);
  return fold(words, 32);
}

uint64_t read_sse2(const std::byte* data, size_t size_bytes) {
  __m128i sums[8] = {};
  for (size_t i = 0; i + kStep <= size_bytes; i += kStep)
#pragma GCC unroll 8
    for (size_t line = 0; line < 8; ++line) {
      const auto* vectors = reinterpret_cast<const __m128i*>(data + i + line * 64);
      _mm_prefetch(reinterpret_cast<const char*>(vectors) + kPrefetchDistance, _MM_HINT_NTA);
      for (size_t part = 0; part < 4; ++part)
        sums[line] = _mm_add_epi64(sums[line], _mm_loadu_si128(vectors + part));
    }
  uint64_t words[16];
  std::memcpy(words, sums, sizeof sums);
  return fold(words, 16);
}

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

ReadSweep::ReadSweep(const DeviceInfo& device, ThreadPool& pool, size_t size_bytes)
    : read_(device.cpu.avx512 ? read_avx512
            : device.cpu.avx2 ? read_avx2
                              : read_sse2),
      pool_(pool),
      memory_(Buffer::host((size_bytes + kGrain - 1) / kGrain * kGrain)),
      sums_(static_cast<size_t>(pool.num_threads())) {
  // Untouched pages would all be the one zero page, which stays in the cache.
  pool_.run([&](int worker_idx) {
    const auto [begin, end] = pool_.part(worker_idx, static_cast<int64_t>(memory_.size_bytes()), kGrain);
    std::memset(memory_.data() + begin, 1, static_cast<size_t>(end - begin));
  });
}

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
