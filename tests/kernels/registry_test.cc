#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "kernels/kernel.h"

namespace sinter::kernels {
namespace {

TEST(Registry, NamesAreUniqueAndNameAStem) {
  std::set<std::string_view> names;
  for (const KernelInfo* kernel : registry()) {
    EXPECT_TRUE(names.insert(kernel->name).second) << kernel->name;
    const size_t dot = kernel->name.find('.');
    const std::filesystem::path folder = std::filesystem::path(SINTER_SOURCE_DIR) / "src/kernels";
    const std::string stem(kernel->name.substr(dot + 1));
    EXPECT_TRUE(std::filesystem::exists(folder / kernel->name.substr(0, dot) / (stem + ".cc")))
        << kernel->name;
    EXPECT_TRUE(stem.starts_with(ops::name(kernel->op))) << kernel->name;
    EXPECT_EQ(find_kernel(kernel->name), kernel);
    EXPECT_NE(kernel->supports, nullptr);
    EXPECT_NE(kernel->launch, nullptr);
    EXPECT_EQ(kernel->pack == nullptr, kernel->packed_bytes == nullptr);
    const bool as_it_lies =
        kernel->layout == ops::WeightLayout::kNone || kernel->layout == ops::WeightLayout::kInPlace;
    EXPECT_EQ(kernel->pack == nullptr, as_it_lies) << kernel->name;
  }
  EXPECT_EQ(find_kernel("cpu.nothing"), nullptr);
}

TEST(Registry, EveryOpHasOneOracleAndItComesLast) {
  std::map<ops::Op, int> num_oracles;
  for (const KernelInfo* kernel : registry()) {
    EXPECT_EQ(num_oracles[kernel->op], 0)
        << kernel->name << " comes after the oracle and would never be taken";
    if (kernel->is_oracle) ++num_oracles[kernel->op];
  }
  EXPECT_EQ(num_oracles.size(), static_cast<size_t>(ops::kNumOps));
  for (const auto& [op, count] : num_oracles) EXPECT_EQ(count, 1) << ops::name(op);
}

TEST(Config, IsAnOrderedListOfNamedIntegers) {
  const Config config = {{"rows", 4}, {"ahead_bytes", 9216}};
  EXPECT_EQ(config.get("ahead_bytes"), 9216);
  EXPECT_EQ(config.values()[0].first, "rows");
  EXPECT_THROW(config.get("columns"), Error);
  EXPECT_FALSE(config == Config({{"rows", 4}}));
}

TEST(Cost, CountsWhatMustMove) {
  using ops::WeightFormat;
  const Cost linear = op_cost(
      ops::LinearProblem{.T = 2, .N = 64, .K = 128, .format = WeightFormat::kNvfp4, .y = DType::kF32});
  EXPECT_DOUBLE_EQ(linear.bytes, 64 * 128 * 0.5625 + 2 * 128 * 2 + 2 * 64 * 4);
  EXPECT_DOUBLE_EQ(linear.operations, 2 * 2 * 64 * 128);

  // GLM-5: 8 distinct experts for one token, 30.5 for four.
  ops::MoeFfnProblem moe{.T = 1, .H = 6144, .I = 2048, .E = 256, .A = 8};
  const double expert_bytes = 3 * 6144 * 2048 * 0.5625;
  EXPECT_NEAR(op_cost(moe).bytes / expert_bytes, 8, 0.01);
  moe.T = 4;
  EXPECT_NEAR(op_cost(moe).bytes / expert_bytes, 30.5, 0.1);

  // A sparse choice reads its rows, but never more than there are.
  ops::MlaAttentionProblem mla{.T = 1,
                               .B = 1,
                               .Q = 64,
                               .C = 512,
                               .R = 64,
                               .P = 64,
                               .max_context = 65536,
                               .index_topk = 2048,
                               .scale = 1};
  const double io_bytes = 64 * (2 * 512 + 64) * 2;
  EXPECT_DOUBLE_EQ(op_cost(mla).bytes, 2048 * 576 * 2 + io_bytes + 2048 * 4);
  mla.max_context = 1000;
  EXPECT_DOUBLE_EQ(op_cost(mla).bytes, 1000 * 576 * 2 + io_bytes + 2048 * 4);
}

}  // namespace
}  // namespace sinter::kernels
