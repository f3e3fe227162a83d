// Every row for GPUs over every case of benchmarks/cases: supported problems give the answer of the CPU's
// oracle, write all of their output and nothing else, and give the same bits again, from a graph as well.
#include <gtest/gtest.h>

#include <cstdio>

#include "contract/cases.h"
#include "contract/comparison.h"
#include "contract/tensor_values.h"
#include "device/gpu_graph.h"
#include "device/machine_gpu.h"
#include "measure/gpu_arguments.h"

namespace sinter {
namespace {

using kernels::Config;
using kernels::KernelInfo;
using measure::Arguments;
using measure::Case;
using measure::GpuArguments;
using testing::GpuWorkspace;

// Tensor cores cut off the low bits of what they add, once in 16 columns, and always towards zero.
constexpr double kSumTolerance = 3e-5;

// Why launches of an op are not recorded into a graph; empty when they are.
std::string_view why_no_graph(ops::Op op) {
  return op == ops::Op::kSample ? "its parameters and histories lie on the host" : "";
}

std::vector<const KernelInfo*> gpu_rows() {
  std::vector<const KernelInfo*> rows;
  for (const KernelInfo* kernel : kernels::registry())
    if (kernel->processor == kernels::Processor::kGpu) rows.push_back(kernel);
  return rows;
}

class GpuContract : public testing::MachineGpuTest, public ::testing::WithParamInterface<const KernelInfo*> {
 protected:
  void check_case(const KernelInfo& kernel, const Case& one, uint64_t seed, WorstError& worst);
  void check_config(const KernelInfo& kernel, const Case& one, const Config& config, Arguments& arguments,
                    GpuArguments& gpu_arguments, const std::vector<std::vector<double>>& expected,
                    WorstError& worst);
  std::vector<std::vector<double>> oracle_values(const Case& one, Arguments& arguments);
  void load_programs(const KernelInfo& kernel);
  std::vector<Config> configs_of(const KernelInfo& kernel, const ops::Problem& problem);
};

std::vector<Config> GpuContract::configs_of(const KernelInfo& kernel, const ops::Problem& problem) {
  if (kernel.configs == nullptr) return {Config()};
  return kernel.configs(problem, info());
}

// Side by side, which one after the other takes minutes.
void GpuContract::load_programs(const KernelInfo& kernel) {
  std::vector<kernels::GpuProgram> needed;
  for (const Case& one : all_cases()) {
    if (ops::op_of(one.problem) != kernel.op || !kernels::supports(kernel, one.problem, info())) continue;
    for (const Config& config : configs_of(kernel, one.problem))
      for (kernels::GpuProgram& program : kernel.programs(one.problem, info(), config))
        needed.push_back(std::move(program));
  }
  programs().load(needed);
}

std::vector<std::vector<double>> GpuContract::oracle_values(const Case& one, Arguments& arguments) {
  const KernelInfo& oracle = oracle_of(ops::op_of(one.problem));
  arguments.pack_for(oracle, pool());
  arguments.reset_outputs();
  const Buffer workspace = Buffer::host(kernels::workspace_bytes(oracle, one.problem, {}));
  kernels::LaunchContext context{.pool = pool(), .workspace = workspace.bytes()};
  oracle.launch(context, one.problem, arguments.args(), {});
  std::vector<std::vector<double>> values;
  for (const auto& output : arguments.outputs()) values.push_back(values_of(output.view));
  return values;
}

void GpuContract::check_config(const KernelInfo& kernel, const Case& one, const Config& config,
                               Arguments& arguments, GpuArguments& gpu_arguments,
                               const std::vector<std::vector<double>>& expected, WorstError& worst) {
  GpuWorkspace workspace(device(), stream(), kernels::workspace_bytes(kernel, one.problem, config));
  kernels::LaunchContext context{.pool = pool(), .workspace = workspace.bytes(), .gpu = &gpu_launch()};
  const auto launch = [&] { kernel.launch(context, one.problem, gpu_arguments.args(), config); };
  // Runs `work` on poisoned memory; the bytes of all outputs.
  const auto run = [&](const auto& work) {
    gpu_arguments.reset_outputs();
    workspace.poison();
    work();
    gpu_arguments.read_outputs();
    EXPECT_TRUE(workspace.is_guard_intact()) << "wrote behind the workspace";
    EXPECT_TRUE(arguments.is_padding_intact()) << "wrote between the rows of an output";
    std::vector<std::byte> bytes;
    for (const auto& output : arguments.outputs()) {
      const std::vector<std::byte> more = bytes_of(output.view);
      bytes.insert(bytes.end(), more.begin(), more.end());
    }
    return bytes;
  };

  const std::vector<std::byte> first = run(launch);
  expect_all_written(one.problem, arguments);
  expect_answer(one.problem, arguments, expected, kSumTolerance, worst);
  EXPECT_EQ(first, run(launch)) << "differs from run to run";
  if (why_no_graph(kernel.op).empty()) {
    const GpuGraph graph = GpuGraph::capture(stream(), launch);
    EXPECT_GT(graph.nodes().num_kernels, 0);
    EXPECT_EQ(graph.nodes().num_allocations, 0);
    EXPECT_EQ(graph.nodes().num_host_calls, 0);
    EXPECT_EQ(first, run([&] { graph.launch(stream()); })) << "differs when launched as a graph";
  }
  EXPECT_TRUE(gpu_arguments.are_inputs_intact()) << "wrote to an input or behind a tensor";
  expect_monotone_workspace(kernel, one.problem, config);
}

void GpuContract::check_case(const KernelInfo& kernel, const Case& one, uint64_t seed, WorstError& worst) {
  Arguments arguments(one, seed);
  const std::vector<std::vector<double>> expected = oracle_values(one, arguments);
  arguments.reset_outputs();  // what the copy begins with
  GpuArguments gpu_arguments(arguments, device(), gpu_launch());
  gpu_arguments.pack_for(kernel, pool());
  const std::vector<Config> configs = configs_of(kernel, one.problem);
  ASSERT_FALSE(configs.empty()) << "supported, but no config";
  for (const Config& config : configs) {
    std::string names;
    for (const auto& [name, value] : config.values()) names += fmt::format(" {}={}", name, value);
    SCOPED_TRACE("config" + names);
    check_config(kernel, one, config, arguments, gpu_arguments, expected, worst);
    if (HasFailure()) return;
  }
}

TEST_P(GpuContract, HoldsInAllCases) {
  const KernelInfo& kernel = *GetParam();
  ASSERT_NE(kernel.programs, nullptr);
  load_programs(kernel);
  int num_run = 0;
  WorstError worst;
  std::string reason;
  for (size_t i = 0; i < all_cases().size(); ++i) {
    const Case& one = all_cases()[i];
    if (ops::op_of(one.problem) != kernel.op) continue;
    const kernels::Support support = kernels::supports(kernel, one.problem, info());
    if (!support) {
      EXPECT_FALSE(support.reason.empty()) << one.name << ": refused without a reason";
      reason = support.reason;
      continue;
    }
    SCOPED_TRACE(::testing::Message() << kernel.name << ", " << one.name << ", case " << i
                                      << ", SINTER_TEST_SEED=" << base_seed());
    check_case(kernel, one, base_seed() + i, worst);
    ++num_run;
    if (HasFailure()) return;
  }
  if (num_run == 0) GTEST_SKIP() << "no case runs here: " << reason;
  std::printf("%s: %d cases, worst relative error %.2g (%.2g allowed)\n", std::string(kernel.name).c_str(),
              num_run, worst.relative, worst.allowed);
  if (const std::string_view why = why_no_graph(kernel.op); !why.empty())
    std::printf("%s: no graphs, %s\n", std::string(kernel.name).c_str(), std::string(why).c_str());
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuContract);
INSTANTIATE_TEST_SUITE_P(Rows, GpuContract, ::testing::ValuesIn(gpu_rows()),
                         [](const auto& row) { return test_name(*row.param); });

}  // namespace
}  // namespace sinter
