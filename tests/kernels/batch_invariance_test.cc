// A token's results have the same bits whatever else is in the batch: every variant of the vectorised kernels
// (few tokens, many, past a block) adds in the same order.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/kernel.h"
#include "kernels/tokens.h"
#include "measure/arguments.h"
#include "measure/cases.h"

namespace sinter {
namespace {

constexpr int64_t kTokens = 70;  // past the 64 that are multiplied at once
constexpr int64_t kShown[] = {0, 1, 3, 4, 8, 9, 63, 64, 69};

const char* const kCases = R"({"source": "batch invariance", "cases": [
  {"op": "linear", "T": 70, "N": 64, "K": 448, "format": ["bf16", "fp8", "fp8_block", "nvfp4"], "y": "f32"},
  {"op": "head_linear", "T": 70, "Q": 2, "N": 32, "K": 192, "y": "f32"},
  {"op": "moe_ffn", "T": 70, "H": 128, "I": 192, "E": 4, "A": 2, "y": "f32"},
  {"op": "mla_attention", "T": 70, "B": 1, "Q": 5, "C": 64, "R": 32, "P": 16, "max_context": 200, "scale": 0.1},
  {"op": "gqa_attention", "T": 70, "B": 1, "Q": 6, "G": 2, "D": 64, "Dv": 64, "P": 16, "max_context": 200, "scale": 0.1}
]})";

// Runs tokens [begin, end) alone; the bytes of y of token `shown`.
std::vector<std::byte> run(const kernels::KernelInfo& kernel, ops::Problem problem,
                           measure::Arguments& arguments, ThreadPool& pool, int64_t begin, int64_t end,
                           int64_t shown) {
  arguments.reset_outputs();
  ops::Args args = arguments.args();
  keep_tokens(problem, args, begin, end);
  const TensorView y = arguments.outputs()[0].view.slice(0, shown, shown + 1);
  Buffer workspace = Buffer::host(kernels::workspace_bytes(kernel, problem, {}));
  kernels::LaunchContext context{.pool = pool, .workspace = workspace.bytes()};
  kernel.launch(context, problem, args, {});
  std::vector<std::byte> bytes(static_cast<size_t>(y.size_bytes()));
  std::memcpy(bytes.data(), y.data(), bytes.size());
  return bytes;
}

TEST(BatchInvariance, HoldsForVectorisedKernels) {
  ThreadPool pool(2);
  int num_run = 0;
  for (const measure::Case& one : measure::parse_cases(kCases, "batch invariance", measure::CaseUse::kTest)) {
    for (const kernels::KernelInfo* kernel : kernels::registry()) {
      if (kernel->op != ops::op_of(one.problem) || kernel->is_oracle) continue;
      if (!kernels::supports(*kernel, one.problem, host_device())) continue;
      SCOPED_TRACE(testing::Message() << kernel->name << ", " << one.name);
      measure::Arguments arguments(one, 1);
      arguments.pack_for(*kernel, pool);
      for (const int64_t token : kShown) {
        const auto alone = run(*kernel, one.problem, arguments, pool, token, token + 1, token);
        for (const int64_t num_tokens : {2, 3, 5, 8, 9, 64, 70}) {
          const int64_t begin = std::max<int64_t>(0, token + 1 - num_tokens);
          const int64_t end = std::min(kTokens, begin + num_tokens);
          ASSERT_EQ(alone, run(*kernel, one.problem, arguments, pool, begin, end, token))
              << "token " << token << " among " << num_tokens;
        }
      }
      ++num_run;
    }
  }
  if (num_run == 0) GTEST_SKIP() << "no vectorised kernel runs here";
}

}  // namespace
}  // namespace sinter
