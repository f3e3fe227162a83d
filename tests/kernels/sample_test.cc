#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "kernels/cpu/philox.h"
#include "kernels/cpu/rank_key.h"
#include "kernels/kernel.h"
#include "tensor/buffer.h"

namespace sinter::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

int32_t sample(std::vector<float> logits, const ops::SampleParams& params, uint64_t draw_idx = 0,
               const std::vector<int32_t>& history = {}) {
  int32_t id = -1;
  const auto V = static_cast<int64_t>(logits.size());
  const std::span<const int32_t> histories[] = {history};
  const ops::SampleArgs args{.logits = TensorView(logits.data(), DType::kF32, {1, V}),
                             .params = {&params, 1},
                             .history = histories,
                             .draw_idx = {&draw_idx, 1},
                             .ids = TensorView(&id, DType::kI32, {1})};
  const ops::SampleProblem problem{.B = 1, .V = V};
  const KernelInfo& kernel = *find_kernel("cpu.sample_plain");
  const Buffer workspace = Buffer::host(workspace_bytes(kernel, problem, {}));
  static ThreadPool pool(1);
  LaunchContext context{.pool = pool, .workspace = workspace.bytes()};
  kernel.launch(context, problem, args, {});
  return id;
}

// How often each token comes in `num_draws` draws.
std::map<int32_t, double> frequencies(const std::vector<float>& logits, const ops::SampleParams& params,
                                      int num_draws) {
  std::map<int32_t, double> shares;
  for (int i = 0; i < num_draws; ++i)
    shares[sample(logits, params, static_cast<uint64_t>(i))] += 1.0 / num_draws;
  return shares;
}

// Known answers of the authors' library (Random123, kat_vectors).
TEST(Philox, GivesThePublishedVectors) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(cpu::philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(cpu::philox4x32_10({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(cpu::philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RankKey, OrdersAllFloats) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float falling[] = {kInfinity, 3e38f, 1, 1e-45f, 0, -1e-45f, -1, -3e38f, -kInfinity};
  for (size_t i = 0; i < std::size(falling); ++i) {
    EXPECT_EQ(cpu::key_value(cpu::rank_key(falling[i], 7)), falling[i]);
    EXPECT_EQ(cpu::key_position(cpu::rank_key(falling[i], 7)), 7u);
    EXPECT_GT(cpu::rank_key(falling[i], 1), cpu::rank_key(falling[i], 2)) << "ties go to the lower position";
    if (i > 0) {
      EXPECT_GT(cpu::rank_key(falling[i - 1], 9), cpu::rank_key(falling[i], 1));
    }
    for (float any : {nan, -nan}) EXPECT_LT(cpu::rank_key(any, 1), cpu::rank_key(falling[i], 9));
  }
  EXPECT_GT(cpu::rank_key(-0.0f, 1), cpu::rank_key(0.0f, 2)) << "-0 equals +0";
}

TEST(Sample, GreedyTakesTheLargestAndTheLowestOfEquals) {
  EXPECT_EQ(sample({1, 3, 2, 3}, {.temperature = 0}), 1);
  EXPECT_EQ(sample({-0.0f, 0.0f}, {.temperature = 0}), 0);
}

TEST(Sample, DrawsByProbability) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.15f), std::log(0.05f)};
  const auto shares = frequencies(logits, {.seed = 5}, 8000);
  for (int32_t id = 0; id < 4; ++id) EXPECT_NEAR(shares.at(id), std::exp(logits[id]), 0.02) << id;
  // Temperature 0.5 squares probabilities.
  EXPECT_NEAR(frequencies(logits, {.temperature = 0.5f, .seed = 5}, 8000).at(0), 0.25 / 0.365, 0.02);
}

TEST(Sample, FiltersCutTheTail) {
  const std::vector<float> logits = {std::log(0.15f), std::log(0.5f), std::log(0.05f), std::log(0.3f)};
  const auto kept = [&](const ops::SampleParams& params) {
    std::vector<int32_t> ids;
    for (const auto& [id, share] : frequencies(logits, params, 2000)) ids.push_back(id);
    return ids;
  };
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(kept({.top_k = 2}), (Ids{1, 3}));
  EXPECT_EQ(kept({.top_k = 100}), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(kept({.top_p = 0.79f}), (Ids{1, 3}));
  EXPECT_EQ(kept({.top_p = 0.81f}), (Ids{0, 1, 3}));
  EXPECT_EQ(kept({.top_p = 0}), (Ids{1})) << "at least one";
  EXPECT_EQ(kept({.min_p = 0.5f}), (Ids{1, 3}));
  EXPECT_EQ(kept({.min_p = 1}), (Ids{1}));
  // top_p counts what top_k left: 0.5 / 0.8 reaches 0.6.
  EXPECT_EQ(kept({.top_k = 2, .top_p = 0.6f}), (Ids{1}));
}

TEST(Sample, PenaltiesApplyToTheHistory) {
  const ops::SampleParams repetition{.temperature = 0, .repetition_penalty = 2};
  EXPECT_EQ(sample({3, 2}, repetition, 0, {0}), 1);
  EXPECT_EQ(sample({-1, -1.5f}, repetition, 0, {0}), 1) << "negative logits are multiplied";
  EXPECT_EQ(sample({3, 2}, {.temperature = 0, .presence_penalty = 0.9f}, 0, {0, 0}), 0)
      << "once, however often";
  EXPECT_EQ(sample({3, 2}, {.temperature = 0, .frequency_penalty = 0.6f}, 0, {0}), 0);
  EXPECT_EQ(sample({3, 2}, {.temperature = 0, .frequency_penalty = 0.6f}, 0, {0, 0}), 1);
}

TEST(Sample, SurvivesInfinitiesAndNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (float temperature : {0.0f, 1.0f}) {
    EXPECT_EQ(sample({0, kInfinity, 5}, {.temperature = temperature}), 1);
    EXPECT_EQ(sample({nan, 1, -kInfinity}, {.temperature = temperature}), 1);
    for (const std::vector<float>& logits : {std::vector<float>(3, nan), std::vector<float>(3, -kInfinity)}) {
      const int32_t id = sample(logits, {.temperature = temperature, .top_p = 0.9f, .min_p = 0.1f});
      EXPECT_TRUE(id >= 0 && id < 3);
    }
  }
}

}  // namespace
}  // namespace sinter::kernels
