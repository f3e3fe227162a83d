#include "ops/op.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "measure/arguments.h"
#include "measure/cases.h"

namespace sinter {
namespace {

std::vector<measure::Case> all_cases() {
  return measure::load_cases(SINTER_SOURCE_DIR "/benchmarks/cases", measure::CaseUse::kTest);
}

TEST(Op, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (int i = 0; i < ops::kNumOps; ++i) names.insert(ops::name(static_cast<ops::Op>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(ops::kNumOps));
  EXPECT_FALSE(names.contains("?"));
}

TEST(Op, DescriptionTellsProblemsApart) {
  EXPECT_EQ(ops::describe(ops::LinearProblem{
                .T = 1, .N = 6144, .K = 2048, .format = ops::WeightFormat::kNvfp4, .y = DType::kF32}),
            "linear T=1 N=6144 K=2048 nvfp4 bf16->f32");
  // Look-up keys: equal text exactly for equal problems.
  const std::vector<measure::Case> cases = all_cases();
  std::vector<std::string> texts;
  for (const auto& one : cases) texts.push_back(ops::describe(one.problem));
  for (size_t a = 0; a < cases.size(); ++a)
    for (size_t b = 0; b < a; ++b)
      ASSERT_EQ(cases[a].problem == cases[b].problem, texts[a] == texts[b]) << texts[a] << " | " << texts[b];
}

TEST(Op, EveryOpHasCases) {
  std::set<ops::Op> ops;
  for (const auto& one : all_cases()) ops.insert(ops::op_of(one.problem));
  EXPECT_EQ(ops.size(), static_cast<size_t>(ops::kNumOps));
}

// A number of the problem that a tensor does not follow is found, whatever the op.
TEST(CheckArgs, FindsEveryWrongNumber) {
  const auto throws = [](const ops::Problem& problem, const ops::Args& args) {
    try {
      ops::check_args(problem, args);
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  std::set<ops::Op> seen;
  for (const auto& one : all_cases()) {
    if (!seen.insert(ops::op_of(one.problem)).second) continue;
    const measure::Arguments arguments(one, 1);
    ASSERT_FALSE(throws(one.problem, arguments.args())) << one.name;
    ops::Problem problem = one.problem;
    const auto expect_found = [&](int64_t& number, const char* name) {
      for (int64_t change : {1, -1}) {
        number += change;
        EXPECT_TRUE(throws(problem, arguments.args())) << one.name << ": " << name;
        number -= change;
      }
    };
    std::visit(
        [&](auto& p) {
          if constexpr (requires { p.T; }) expect_found(p.T, "T");
          if constexpr (requires { p.N; }) expect_found(p.N, "N");
          if constexpr (requires { p.K; }) expect_found(p.K, "K");
          if constexpr (requires { p.H; }) expect_found(p.H, "H");
          if constexpr (requires { p.I; }) expect_found(p.I, "I");
          if constexpr (requires { p.E; }) expect_found(p.E, "E");
          if constexpr (requires { p.A; }) expect_found(p.A, "A");
          if constexpr (requires { p.B; }) expect_found(p.B, "B");
          if constexpr (requires { p.P; }) expect_found(p.P, "P");
          if constexpr (requires { p.Q; }) expect_found(p.Q, "Q");
          if constexpr (requires { p.G; }) expect_found(p.G, "G");
          if constexpr (requires { p.D; }) expect_found(p.D, "D");
          if constexpr (requires { p.Dv; }) expect_found(p.Dv, "Dv");
          if constexpr (requires { p.C; }) expect_found(p.C, "C");
          if constexpr (requires { p.R; }) expect_found(p.R, "R");
          if constexpr (requires { p.W; }) expect_found(p.W, "W");
          if constexpr (requires { p.V; }) expect_found(p.V, "V");
          if constexpr (requires { p.heads; }) expect_found(p.heads, "heads");
          if constexpr (requires { p.topk; }) expect_found(p.topk, "topk");
          if constexpr (requires { p.index_topk; }) expect_found(p.index_topk, "index_topk");
        },
        problem);
    ops::Args other = ops::SampleArgs();
    if (ops::op_of(problem) == ops::Op::kSample) other = ops::LinearArgs();
    EXPECT_TRUE(throws(problem, other)) << "arguments of another op";
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(ops::kNumOps));
}

}  // namespace
}  // namespace sinter
