#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

#include "base/error.h"

namespace sinter {
namespace {

TEST(ThreadPool, PartsCoverEverythingOnceInOrder) {
  for (int num_threads : {1, 2, 3, 7}) {
    const ThreadPool pool(num_threads);
    for (int64_t count : {0, 1, 2, 16, 17, 100})
      for (int64_t grain : {1, 4, 16}) {
        int64_t next = 0;
        for (int i = 0; i < num_threads; ++i) {
          const auto [begin, end] = pool.part(i, count, grain);
          EXPECT_EQ(begin, next);
          EXPECT_TRUE(begin % grain == 0 || begin == count) << "parts begin on the grain";
          next = end;
        }
        EXPECT_EQ(next, count);
      }
  }
}

TEST(ThreadPool, RunsEveryWorkerEveryTime) {
  ThreadPool pool(4);
  std::vector<int64_t> sums(4);
  for (int round = 1; round <= 500; ++round)
    pool.run([&](int worker_idx) { sums[static_cast<size_t>(worker_idx)] += round; });
  for (int64_t sum : sums) EXPECT_EQ(sum, 500 * 501 / 2);
}

TEST(ThreadPool, BarrierSeparatesPhases) {
  ThreadPool pool(3);
  std::vector<int> written(3), seen(3);
  for (int round = 0; round < 100; ++round) {
    pool.run([&](int worker_idx) {
      const auto idx = static_cast<size_t>(worker_idx);
      for (int phase = 1; phase <= 3; ++phase) {
        written[idx] = round * 10 + phase;
        pool.barrier();
        seen[idx] = written[(idx + 1) % 3];
        pool.barrier();
        EXPECT_EQ(seen[idx], round * 10 + phase);
      }
    });
  }
}

TEST(ThreadPool, AnExceptionOfAWorkerArrivesAndThePoolLives) {
  ThreadPool pool(3);
  for (int thrower : {0, 1, 2})
    EXPECT_THROW(pool.run([&](int worker_idx) {
      if (worker_idx == thrower) throw std::runtime_error("worker");
    }),
                 std::runtime_error);
  std::atomic<int> num_run = 0;
  pool.run([&](int) { ++num_run; });
  EXPECT_EQ(num_run, 3);
  // All at once: one arrives, none is left over for the next run.
  EXPECT_THROW(pool.run([](int) { throw std::runtime_error("all"); }), std::runtime_error);
  EXPECT_NO_THROW(pool.run([](int) {}));
}

TEST(ThreadPool, RefusesToRunWithinARun) {
  ThreadPool pool(1);
  EXPECT_THROW(pool.run([&](int) { pool.run([](int) {}); }), Error);
}

TEST(ThreadPool, CountsCores) {
  EXPECT_GE(num_allowed_cores(), 1);
  EXPECT_EQ(ThreadPool().num_threads(), num_allowed_cores());
}

}  // namespace
}  // namespace sinter
