// Every row of the registry over every case of benchmarks/cases: supported problems give the oracle's answer,
// write all of their output and nothing else, and give the same bits again on any number of threads.
#include <gtest/gtest.h>

#include "contract/cases.h"
#include "contract/comparison.h"
#include "contract/tensor_values.h"
#include "kernels/kernel.h"
#include "measure/arguments.h"
#include "measure/cases.h"

namespace sinter {
namespace {

using kernels::Config;
using kernels::KernelInfo;
using measure::Arguments;
using measure::Case;

constexpr double kSumTolerance = 1e-5;  // sums in float32 differ in their order alone

ThreadPool& pool_of(int num_threads) {
  static ThreadPool one(1), two(2), three(3);
  return num_threads == 1 ? one : num_threads == 2 ? two : three;
}

// Workspace of exactly the bytes asked for, full of NaN, with a guard behind.
class Workspace {
 public:
  explicit Workspace(size_t size_bytes)
      : size_bytes_(size_bytes), memory_(Buffer::host(size_bytes + kGuardBytes)) {
    std::memset(memory_.data(), 0xff, memory_.size_bytes());
  }
  std::span<std::byte> bytes() const { return memory_.bytes().first(size_bytes_); }
  bool is_guard_intact() const {
    const auto guard = memory_.bytes().subspan(size_bytes_);
    return std::ranges::all_of(guard, [](std::byte byte) { return byte == std::byte{0xff}; });
  }

 private:
  static constexpr size_t kGuardBytes = 64;
  size_t size_bytes_;
  Buffer memory_;
};

std::vector<std::byte> run(const KernelInfo& kernel, const ops::Problem& problem, const Config& config,
                           Arguments& arguments, int num_threads) {
  ThreadPool& pool = pool_of(num_threads);
  arguments.pack_for(kernel, pool);
  arguments.reset_outputs();
  const Workspace workspace(kernels::workspace_bytes(kernel, problem, config));
  kernels::LaunchContext context{.pool = pool, .workspace = workspace.bytes()};
  kernel.launch(context, problem, arguments.args(), config);
  EXPECT_TRUE(workspace.is_guard_intact()) << "wrote behind the workspace";
  EXPECT_TRUE(arguments.is_padding_intact()) << "wrote between the rows of an output";
  std::vector<std::byte> bytes;
  for (const auto& output : arguments.outputs()) {
    const std::vector<std::byte> more = bytes_of(output.view);
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  return bytes;
}

void check_case(const KernelInfo& kernel, const Case& one, uint64_t seed) {
  const DeviceInfo& device = host_device();
  Arguments arguments(one, seed);
  std::vector<std::vector<double>> expected;
  WorstError worst;
  if (!kernel.is_oracle) {
    const KernelInfo& oracle = oracle_of(kernel.op);
    run(oracle, one.problem, {}, arguments, 2);
    for (const auto& output : arguments.outputs()) expected.push_back(values_of(output.view));
  }
  std::vector<Config> configs = {Config()};
  if (kernel.configs != nullptr) configs = kernel.configs(one.problem, device);
  ASSERT_FALSE(configs.empty()) << "supported, but no config";
  for (const Config& config : configs) {
    const std::vector<std::byte> first = run(kernel, one.problem, config, arguments, 1);
    expect_all_written(one.problem, arguments);
    if (!kernel.is_oracle) expect_answer(one.problem, arguments, expected, kSumTolerance, worst);
    EXPECT_EQ(first, run(kernel, one.problem, config, arguments, 1)) << "differs from run to run";
    for (int num_threads : {2, 3})
      EXPECT_EQ(first, run(kernel, one.problem, config, arguments, num_threads))
          << "differs with " << num_threads << " threads";
    expect_monotone_workspace(kernel, one.problem, config);
  }
  const kernels::Cost cost = kernels::cost_of(kernel, one.problem);
  EXPECT_GT(cost.bytes, 0);
  EXPECT_GE(cost.operations, 0);
}

class Contract : public testing::TestWithParam<const KernelInfo*> {};

TEST_P(Contract, HoldsInAllCases) {
  const KernelInfo& kernel = *GetParam();
  int num_run = 0;
  std::string reason;
  for (size_t i = 0; i < all_cases().size(); ++i) {
    const Case& one = all_cases()[i];
    if (ops::op_of(one.problem) != kernel.op) continue;
    const kernels::Support support = kernels::supports(kernel, one.problem, host_device());
    if (!support) {
      EXPECT_FALSE(support.reason.empty()) << one.name << ": refused without a reason";
      EXPECT_FALSE(kernel.is_oracle) << one.name << ": an oracle takes every problem";
      reason = support.reason;
      continue;
    }
    const uint64_t seed = base_seed() + i;
    SCOPED_TRACE(testing::Message() << kernel.name << ", " << one.name << ", case " << i
                                    << ", SINTER_TEST_SEED=" << base_seed());
    check_case(kernel, one, seed);
    ++num_run;
    if (HasFailure()) return;
  }
  if (num_run == 0) GTEST_SKIP() << "no case runs here: " << reason;
}

INSTANTIATE_TEST_SUITE_P(Rows, Contract,
                         testing::ValuesIn(kernels::registry().begin(), kernels::registry().end()),
                         [](const auto& row) { return test_name(*row.param); });

}  // namespace
}  // namespace sinter
