// What every kernel's outputs are held against: the oracle's, and what a launch may touch.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <vector>

#include "contract/tensor_values.h"
#include "kernels/kernel.h"
#include "measure/arguments.h"

namespace sinter {

inline void expect_all_written(const ops::Problem& problem, const measure::Arguments& arguments) {
  if (ops::op_of(problem) == ops::Op::kCacheWrite) return;  // most of a cache stays as it is
  for (const auto& output : arguments.outputs())
    for (double value : values_of(output.view))
      ASSERT_FALSE(std::isnan(value) || value == measure::kPoison)
          << output.name << " holds a value never written, or NaN";
}

// Relative error allowed. A result in bf16 may round the other way, 2^-7 of it, and so may a value on the way
// (one of `hidden` may be nearly all of a row); sums in float32 differ by `of_sums`.
inline double tolerance(const ops::Problem& problem, DType output, double of_sums) {
  const bool rounds = std::visit(
      [](const auto& p) {
        if constexpr (requires { p.E, p.x; }) return p.x == DType::kBF16;
        if constexpr (requires { p.q; }) return p.q == DType::kBF16;
        return false;
      },
      problem);
  return rounds || output == DType::kBF16 ? 8e-3 : of_sums;
}

// The error that came nearest to what was allowed.
struct WorstError {
  double relative = 0, allowed = 0;
};

// By rows of the first dimension. A row much smaller than the others is compared at their size, and in a few
// numbers chance may cancel most of the sum.
inline void expect_close(const std::vector<double>& found, const std::vector<double>& expected,
                         int64_t num_rows, double allowed, WorstError& worst) {
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
    const double scale = std::max(std::sqrt(norm), typical);
    ASSERT_LE(std::sqrt(error), allowed * scale) << "row " << row;
    const double relative = scale > 0 ? std::sqrt(error) / scale : 0;
    if (relative * worst.allowed >= worst.relative * allowed) worst = {relative, allowed};
  }
}

// The chosen sets may differ where scores tie to within the rounding of a float32 sum.
inline void expect_same_choice(const ops::IndexerProblem& p, const ops::IndexerArgs& a,
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

// `expected`: values of the outputs in their order; `of_sums`: as tolerance() takes it.
inline void expect_answer(const ops::Problem& problem, const measure::Arguments& arguments,
                          const std::vector<std::vector<double>>& expected, double of_sums,
                          WorstError& worst) {
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
      expect_close(found, expected[i], output.view.dim(0), tolerance(problem, output.view.dtype(), of_sums),
                   worst);
    }
  }
}

inline void expect_monotone_workspace(const kernels::KernelInfo& kernel, ops::Problem problem,
                                      const kernels::Config& config) {
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

}  // namespace sinter
