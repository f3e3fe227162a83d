// Runs device code over the cases of benchmarks/cases on the host (simt.h) and compares with the oracle: what
// the contract test does on a GPU, for the logic alone.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "contract/tensor_values.h"
#include "kernels/kernel.h"
#include "kernels_cuda/simt.h"
#include "measure/arguments.h"
#include "measure/cases.h"

namespace sinter::kernels_cuda {

// Kernel launches of one op: the part of the host half that matters here. `backwards`: order of threads.
template <typename Problem, typename Args>
using Run = std::function<void(const Problem&, const Args&, bool backwards)>;

// Memory of a kernel alone, full of NaN.
template <typename T>
std::vector<T> poisoned(int64_t count) {
  std::vector<T> memory(static_cast<size_t>(count));
  if (count > 0) std::memset(memory.data(), 0xff, memory.size() * sizeof(T));
  return memory;
}

inline void expect_rows_close(const TensorView& view, const std::vector<double>& expected, double allowed) {
  const std::vector<double> found = values_of(view);
  if (expected.size() < 32) allowed *= 50;
  const auto num_rows = static_cast<size_t>(view.dim(0));
  const size_t width = expected.size() / num_rows;
  double total = 0;
  for (double value : expected) total += value * value;
  const double typical = std::sqrt(total / static_cast<double>(num_rows));
  for (size_t row = 0; row < num_rows; ++row) {
    double error = 0, norm = 0;
    for (size_t i = row * width; i < (row + 1) * width; ++i) {
      error += (found[i] - expected[i]) * (found[i] - expected[i]);
      norm += expected[i] * expected[i];
    }
    ASSERT_LE(std::sqrt(error), allowed * std::max(std::sqrt(norm), typical)) << "row " << row;
  }
}

inline const kernels::KernelInfo& oracle_of(ops::Op op) {
  for (const kernels::KernelInfo* kernel : kernels::registry())
    if (kernel->op == op && kernel->is_oracle) return *kernel;
  throw std::logic_error("no oracle");
}

// Every test case of the op that `wanted` takes. allowed(problem, dtype): relative error of a row.
template <typename Problem, typename Args>
void check_cases(const Run<Problem, Args>& run, const std::function<bool(const Problem&)>& wanted,
                 const std::function<double(const Problem&, DType)>& allowed) {
  static const auto cases =
      measure::load_cases(SINTER_SOURCE_DIR "/benchmarks/cases", measure::CaseUse::kTest);
  ThreadPool pool(2);
  int num_run = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto* problem = std::get_if<Problem>(&cases[i].problem);
    if (problem == nullptr || !wanted(*problem)) continue;
    SCOPED_TRACE(cases[i].name);
    measure::Arguments arguments(cases[i], 17 + i);
    const kernels::KernelInfo& oracle = oracle_of(ops::op_of(cases[i].problem));
    arguments.pack_for(oracle, pool);
    Buffer workspace = Buffer::host(kernels::workspace_bytes(oracle, cases[i].problem, {}) + 64);
    kernels::LaunchContext context{.pool = pool, .workspace = workspace.bytes()};
    oracle.launch(context, cases[i].problem, arguments.args(), {});
    std::vector<std::vector<double>> expected;
    for (const auto& output : arguments.outputs()) expected.push_back(values_of(output.view));

    std::vector<std::byte> first;
    for (const bool backwards : {false, true}) {
      arguments.reset_outputs();
      run(*problem, std::get<Args>(arguments.args()), backwards);
      EXPECT_TRUE(arguments.is_padding_intact()) << "wrote between the rows of an output";
      std::vector<std::byte> bytes;
      for (size_t j = 0; j < expected.size(); ++j) {
        const auto& output = arguments.outputs()[j];
        const std::vector<std::byte> more = bytes_of(output.view);
        bytes.insert(bytes.end(), more.begin(), more.end());
        if (output.view.dtype() == DType::kI32) {
          ASSERT_EQ(values_of(output.view), expected[j]) << output.name;
        } else if (output.name == "cache") {
          const std::vector<double> found = values_of(output.view);
          for (size_t k = 0; k < found.size(); ++k)
            ASSERT_TRUE(found[k] == expected[j][k] || (std::isnan(found[k]) && std::isnan(expected[j][k])));
        } else {
          expect_rows_close(output.view, expected[j], allowed(*problem, output.view.dtype()));
        }
      }
      if (backwards) {
        EXPECT_EQ(first, bytes) << "depends on the order of threads";
      }
      first = bytes;
    }
    ++num_run;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(num_run, 0);
}

// As the contract test: bf16 results may round the other way, sums in float32 differ in their order.
template <typename Problem>
double usual_error(const Problem&, DType output) {
  return output == DType::kBF16 ? 8e-3 : 1e-5;
}

template <typename Problem>
bool any(const Problem&) {
  return true;
}

}  // namespace sinter::kernels_cuda
