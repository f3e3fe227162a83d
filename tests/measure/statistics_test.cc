#include "measure/statistics.h"

#include <gtest/gtest.h>

#include <vector>

#include "measure/ceilings.h"
#include "measure/timer.h"

namespace sinter::measure {
namespace {

TEST(Summary, InterpolatesQuantiles) {
  const std::vector<double> samples = {40, 10, 30, 20};
  const Summary summary = summarize(samples);
  EXPECT_EQ(summary.num_samples, 4);
  EXPECT_DOUBLE_EQ(summary.median, 25);
  EXPECT_DOUBLE_EQ(summary.quartile_low, 17.5);
  EXPECT_DOUBLE_EQ(summary.quartile_high, 32.5);
  EXPECT_DOUBLE_EQ(summary.spread(), 0.6);
  EXPECT_DOUBLE_EQ(summary.min, 10);
  EXPECT_DOUBLE_EQ(summary.max, 40);
  EXPECT_DOUBLE_EQ(summarize(std::vector<double>{7}).median, 7);
  EXPECT_EQ(summarize({}).num_samples, 0);
}

TEST(TimeRounds, LeavesWarmupsOut) {
  std::vector<int> rounds;
  EXPECT_EQ(time_rounds_us(2, 3, [&](int round_idx) { rounds.push_back(round_idx); }).size(), 3u);
  EXPECT_EQ(rounds, (std::vector<int>{0, 1, 2, 3, 4}));
}

// Times on shared machines cannot be asserted; that all of the memory is read, at a speed of this world, can.
TEST(ReadSweep, ReadsAllOfMemory) {
  ThreadPool pool(2);
  ReadSweep sweep(pool, size_t{16} << 20);
  const Summary summary = sweep.run_rounds(3);
  EXPECT_GT(summary.median, 1e7);
  EXPECT_LT(summary.median, 1e13);
  EXPECT_FALSE(sweep.pattern().empty());
}

TEST(Placement, IsFound) {
  ThreadPool one(1), two(2);
  EXPECT_EQ(find_placement(one), Placement::kOneThread);
  EXPECT_NE(find_placement(two), Placement::kOneThread);
}

}  // namespace
}  // namespace sinter::measure
