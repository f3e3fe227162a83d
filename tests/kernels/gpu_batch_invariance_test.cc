// Which rows for GPUs give a token the same bits whatever else is in its batch: --batch-invariant admits only
// those.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "contract/tensor_values.h"
#include "device/machine_gpu.h"
#include "kernels/tokens.h"
#include "measure/gpu_arguments.h"

namespace sinter {
namespace {

constexpr int64_t kTokens = 80;  // past the 64 columns of a tile
constexpr int64_t kBatches[] = {1, 2, 5, 16, 40, 80};
constexpr int64_t kShown[] = {0, 1, 8, 33, 79};

const char* const kCases = R"({"source": "batch invariance", "cases": [
  {"op": "rms_norm", "N": 80, "H": 1000, "eps": 1e-6, "y": "f32"},
  {"op": "layer_norm", "N": 80, "H": 1000, "eps": 1e-6, "y": "f32"},
  {"op": "linear", "T": 80, "N": 96, "K": 2048, "format": ["bf16", "f32", "fp8", "fp8_block", "nvfp4", "mxfp4"], "y": "f32"},
  {"op": "head_linear", "T": 80, "Q": 4, "N": 64, "K": 512, "y": "f32"},
  {"op": "silu_mul", "T": 80, "I": 1000},
  {"op": "router", "T": 80, "E": 64, "A": 8, "has_bias": true},
  {"op": "moe_ffn", "T": 80, "H": 512, "I": 256, "E": 8, "A": 2, "format": ["nvfp4", "bf16"], "format_down": "nvfp4", "y": "f32"},
  {"op": "mla_attention", "T": 80, "B": 1, "Q": 16, "C": 512, "R": 64, "P": 64, "max_context": 3000, "scale": 0.04, "q": "bf16"},
  {"op": "mla_attention", "T": 80, "B": 16, "Q": 16, "C": 512, "R": 64, "P": 64, "max_context": 3000, "scale": 0.04, "q": "f32"},
  {"op": "mla_attention", "T": 80, "B": 1, "Q": 16, "C": 512, "R": 64, "P": 64, "max_context": 3000, "index_topk": 600, "scale": 0.04},
  {"op": "gqa_attention", "T": 80, "B": 1, "Q": 8, "G": 2, "D": 128, "Dv": 128, "P": 64, "max_context": 3000, "scale": 0.09},
  {"op": "gqa_attention", "T": 80, "B": 16, "Q": 8, "G": 2, "D": 128, "Dv": 128, "P": 64, "max_context": 3000, "scale": 0.09, "q": "f32"},
  {"op": "indexer", "T": 80, "B": 1, "heads": 16, "D": 128, "P": 64, "max_context": 3000, "topk": 600}
]})";

// Rows whose order of summation follows the number of tokens, and why.
const std::map<std::string_view, std::string_view> kDependsOnBatch = {
    {"cuda.mla_attention", "more than 32 tokens take the context in one stretch"},
    {"cuda.gqa_attention", "more than 32 tokens take the context in one stretch"},
};

std::vector<std::byte> bytes_of_token(const measure::Arguments& arguments, int64_t token) {
  std::vector<std::byte> bytes;
  for (const auto& output : arguments.outputs()) {
    const std::vector<std::byte> more = bytes_of(output.view.slice(0, token, token + 1));
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  return bytes;
}

class GpuBatchInvariance : public testing::MachineGpuTest {
 protected:
  // Side by side, which one after the other takes minutes.
  static void load_programs(const std::vector<measure::Case>& cases) {
    std::vector<kernels::GpuProgram> needed;
    for (const measure::Case& one : cases)
      for (const kernels::KernelInfo* kernel : kernels::registry())
        for (const int64_t num_tokens : kBatches) {
          if (kernel->op != ops::op_of(one.problem)) continue;
          ops::Problem problem = one.problem;
          set_num_tokens(problem, num_tokens);
          if (!kernels::supports(*kernel, problem, info())) continue;
          const kernels::Config config = kernels::default_config(*kernel, problem, info());
          for (kernels::GpuProgram& program : kernel->programs(problem, info(), config))
            needed.push_back(std::move(program));
        }
    programs().load(needed);
  }

  // Runs tokens [begin, end) alone; the bytes that token `shown` has in all outputs. Empty where the row
  // takes no problem of so many tokens.
  std::vector<std::byte> run(const kernels::KernelInfo& kernel, const measure::Case& one,
                             measure::Arguments& arguments, measure::GpuArguments& gpu_arguments,
                             int64_t begin, int64_t end, int64_t shown) {
    ops::Problem problem = one.problem;
    ops::Args args = gpu_arguments.args();
    keep_tokens(problem, args, begin, end);
    if (!kernels::supports(kernel, problem, info())) return {};
    const kernels::Config config = kernels::default_config(kernel, problem, info());
    gpu_arguments.reset_outputs();
    const std::vector<std::byte> poisoned = bytes_of_token(arguments, shown);
    testing::GpuWorkspace workspace(device(), stream(), kernels::workspace_bytes(kernel, problem, config));
    kernels::LaunchContext context{.pool = pool(), .workspace = workspace.bytes(), .gpu = &gpu_launch()};
    kernel.launch(context, problem, args, config);
    gpu_arguments.read_outputs();
    std::vector<std::byte> bytes = bytes_of_token(arguments, shown);
    EXPECT_NE(bytes, poisoned) << kernel.name << " wrote nothing: " << one.name;
    return bytes;
  }
};

TEST_F(GpuBatchInvariance, HoldsForRowsThatAreNotExcepted) {
  std::map<std::string_view, std::string> holds;  // by row: what differs first, or nothing
  for (const measure::Case& one : measure::parse_cases(kCases, "batch invariance", measure::CaseUse::kTest)) {
    for (const kernels::KernelInfo* kernel : kernels::registry()) {
      if (kernel->op != ops::op_of(one.problem) || kernel->processor != kernels::Processor::kGpu) continue;
      measure::Arguments arguments(one, 1);
      measure::GpuArguments gpu_arguments(arguments, device(), gpu_launch());
      gpu_arguments.pack_for(*kernel, pool());
      for (const int64_t token : kShown) {
        std::vector<std::byte> first;
        int64_t first_num_tokens = 0;
        for (const int64_t num_tokens : kBatches) {
          const int64_t begin = std::max<int64_t>(0, token + 1 - num_tokens);
          const int64_t end = std::min(kTokens, begin + num_tokens);
          const auto bytes = run(*kernel, one, arguments, gpu_arguments, begin, end, token);
          if (bytes.empty()) continue;
          if (first.empty()) {
            first = bytes;
            first_num_tokens = num_tokens;
          }
          std::string& difference = holds[kernel->name];
          if (bytes != first && difference.empty())
            difference = fmt::format("token {} among {} and among {} of {}", token, first_num_tokens,
                                     num_tokens, one.name);
        }
      }
    }
  }
  if (holds.empty()) GTEST_SKIP() << "no row runs here";
  for (const auto& [name, difference] : holds) {
    const auto excepted = kDependsOnBatch.find(name);
    const bool is_excepted = excepted != kDependsOnBatch.end();
    std::printf("%s: %s\n", std::string(name).c_str(),
                difference.empty() ? "does not depend on the batch" : ("differs: " + difference).c_str());
    EXPECT_TRUE(difference.empty() || is_excepted) << name << ": " << difference;
  }
}

}  // namespace
}  // namespace sinter
