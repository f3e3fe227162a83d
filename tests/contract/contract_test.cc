// Every row of the registry over every case of benchmarks/cases: supported problems give the oracle's answer,
// write all of their output and nothing else, and give the same bits again on any number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

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

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases =
      measure::load_cases(SINTER_SOURCE_DIR "/benchmarks/cases", measure::CaseUse::kTest);
  return cases;
}

// SINTER_TEST_SEED repeats a failure; a failure prints it.
uint64_t base_seed() {
  static const uint64_t seed = [] {
    const char* given = std::getenv("SINTER_TEST_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  }();
  return seed;
}

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

void expect_all_written(const ops::Problem& problem, const Arguments& arguments) {
  if (ops::op_of(problem) == ops::Op::kCacheWrite) return;  // most of a cache stays as it is
  for (const auto& output : arguments.outputs())
    for (double value : values_of(output.view))
      ASSERT_FALSE(std::isnan(value) || value == measure::kPoison)
          << output.name << " holds a value never written, or NaN";
}

// Relative error allowed. A result in bf16 may round the other way, 2^-7 of it, and so may a value on the way
// (one of `hidden` may be nearly all of a row); sums in float32 only differ in their order.
double tolerance(const ops::Problem& problem, DType output) {
  const bool rounds = std::visit(
      [](const auto& p) {
        if constexpr (requires { p.E, p.x; }) return p.x == DType::kBF16;
        if constexpr (requires { p.q; }) return p.q == DType::kBF16;
        return false;
      },
      problem);
  return rounds || output == DType::kBF16 ? 8e-3 : 1e-5;
}

// By rows of the first dimension. A row much smaller than the others is compared at their size, and in a few
// numbers chance may cancel most of the sum.
void expect_close(const std::vector<double>& found, const std::vector<double>& expected, int64_t num_rows,
                  double allowed) {
  if (expected.size() < 32) allowed *= 50;
  const size_t width = expected.size() / static_cast<size_t>(num_rows);
  double total = 0;
  for (double value : expected) total += value * value;
  const double typical = std::sqrt(total / static_cast<double>(num_rows));
  for (size_t row = 0; row < static_cast<size_t>(num_rows); ++row) {
    double error = 0, norm = 0;
    for (size_t i = row * width; i < (row + 1) * width; ++i) {
      error += (found[i] - expected[i]) * (found[i] - expected[i]);
      norm += expected[i] * expected[i];
    }
    ASSERT_LE(std::sqrt(error), allowed * std::max(std::sqrt(norm), typical)) << "row " << row;
  }
}

// The chosen sets may differ where scores tie to within the rounding of a float32 sum.
void expect_same_choice(const ops::IndexerProblem& p, const ops::IndexerArgs& a,
                        const std::vector<double>& found, const std::vector<double>& expected) {
  const std::vector<double> q = values_of(a.q), w = values_of(a.w);
  for (int64_t t = 0; t < p.T; ++t) {
    const auto begin = static_cast<ptrdiff_t>(t * p.topk), end = begin + static_cast<ptrdiff_t>(p.topk);
    std::vector<double> only_found, only_expected;
    const auto number = [](double index) { return index < 0 ? 1e9 : index; };  // -1 comes last
    std::vector<double> ours(found.begin() + begin, found.begin() + end);
    std::vector<double> theirs(expected.begin() + begin, expected.begin() + end);
    ASSERT_TRUE(std::ranges::is_sorted(ours, std::less<>(), number)) << "token " << t;
    std::ranges::set_difference(ours, theirs, std::back_inserter(only_found), std::less<>(), number, number);
    std::ranges::set_difference(theirs, ours, std::back_inserter(only_expected), std::less<>(), number,
                                number);
    ASSERT_EQ(only_found.size(), only_expected.size()) << "token " << t;

    const int32_t* pages = a.batch.page_table.row<int32_t>(a.batch.seq_idx.data_as<int32_t>()[t]);
    const auto score = [&](double index, double* magnitude) {
      const auto position = static_cast<int64_t>(index);
      const std::vector<double> k =
          values_of(a.k_cache.slice(0, pages[position / p.P], pages[position / p.P] + 1)
                        .slice(1, position % p.P, position % p.P + 1));
      double sum = 0;
      for (int64_t h = 0; h < p.heads; ++h) {
        double dot = 0;
        for (int64_t d = 0; d < p.D; ++d) dot += q[(t * p.heads + h) * p.D + d] * k[d];
        sum += w[t * p.heads + h] * std::max(dot, 0.0);
        *magnitude += std::abs(w[t * p.heads + h] * dot);
      }
      return sum;
    };
    for (size_t i = 0; i < only_found.size(); ++i) {
      ASSERT_TRUE(only_found[i] >= 0 && only_expected[i] >= 0) << "token " << t;
      double magnitude = 0;
      const double gap = score(only_found[i], &magnitude) - score(only_expected[i], &magnitude);
      ASSERT_LE(std::abs(gap), 1e-5 * magnitude)
          << "token " << t << " took row " << only_found[i] << " for " << only_expected[i];
    }
  }
}

void expect_answer(const ops::Problem& problem, const Arguments& arguments,
                   const std::vector<std::vector<double>>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto& output = arguments.outputs()[i];
    const std::vector<double> found = values_of(output.view);
    if (const auto* indexer = std::get_if<ops::IndexerProblem>(&problem)) {
      expect_same_choice(*indexer, std::get<ops::IndexerArgs>(arguments.args()), found, expected[i]);
    } else if (output.view.dtype() == DType::kI32) {
      ASSERT_EQ(found, expected[i]) << output.name;
    } else if (ops::op_of(problem) == ops::Op::kCacheWrite) {
      for (size_t j = 0; j < found.size(); ++j)  // NaN is what unused rows hold
        ASSERT_TRUE(found[j] == expected[i][j] || (std::isnan(found[j]) && std::isnan(expected[i][j]))) << j;
    } else {
      expect_close(found, expected[i], output.view.dim(0), tolerance(problem, output.view.dtype()));
    }
  }
}

const KernelInfo& oracle_of(ops::Op op) {
  for (const KernelInfo* kernel : kernels::registry())
    if (kernel->op == op && kernel->is_oracle) return *kernel;
  throw std::logic_error("no oracle");
}

void expect_monotone_workspace(const KernelInfo& kernel, ops::Problem problem, const Config& config) {
  std::visit(
      [&](auto& p) {
        if constexpr (requires { p.T; }) {
          size_t before = 0;
          for (p.T = 1; p.T < 70; p.T += p.T < 20 ? 1 : 7) {
            const size_t needed = kernels::workspace_bytes(kernel, problem, config);
            ASSERT_GE(needed, before) << "T = " << p.T;
            before = needed;
          }
        }
      },
      problem);
}

void check_case(const KernelInfo& kernel, const Case& one, uint64_t seed) {
  const DeviceInfo& device = host_device();
  Arguments arguments(one, seed);
  std::vector<std::vector<double>> expected;
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
    if (!kernel.is_oracle) expect_answer(one.problem, arguments, expected);
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
                         [](const auto& row) {
                           std::string name(row.param->name);
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace sinter
