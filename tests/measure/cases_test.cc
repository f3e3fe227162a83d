#include "measure/cases.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "contract/tensor_values.h"
#include "measure/arguments.h"

namespace sinter::measure {
namespace {

TEST(Cases, ListsMakeEveryCombination) {
  const char* text = R"({"source": "a test", "cases": [
    {"op": "linear", "T": [1, 2], "N": 6144, "K": 2048, "format": ["bf16", "nvfp4"], "y": "f32", "test": {"N": [3, 5, 7]}}]})";
  const std::vector<Case> cases = parse_cases(text, "folder/glm.json", CaseUse::kBenchmark);
  ASSERT_EQ(cases.size(), 4u);
  EXPECT_EQ(cases[3].name, "glm: linear T=2 N=6144 K=2048 nvfp4 bf16->f32");
  EXPECT_EQ(std::get<ops::LinearProblem>(cases[0].problem),
            (ops::LinearProblem{.T = 1, .N = 6144, .K = 2048, .y = DType::kF32}));
  EXPECT_EQ(parse_cases(text, "glm.json", CaseUse::kTest).size(), 12u);
}

TEST(Cases, ReadsScenarios) {
  const auto cases = parse_cases(R"({"cases": [{"op": "cache_write", "T": 3, "B": 2, "W": 4, "P": 2,
    "lengths": [[5, 2], [3, 4]], "strided": true}, {"op": "moe_ffn", "T": 3, "H": 32, "I": 16, "E": 4, "A": 2,
    "routing": "empty_slots"}]})",
                                 "x.json", CaseUse::kTest);
  ASSERT_EQ(cases.size(), 3u);
  EXPECT_EQ(cases[1].scenario.lengths, (std::vector<int64_t>{3, 4}));
  EXPECT_TRUE(cases[1].scenario.strided);
  EXPECT_EQ(cases[2].scenario.routing, Routing::kEmptySlots);
}

TEST(Cases, MistakesAreNamed) {
  const auto message_of = [](std::string_view entry) {
    try {
      parse_cases(fmt::format(R"({{"cases": [{}]}})", entry), "x.json", CaseUse::kTest);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message_of(R"({"op": "matmul"})"),
            "x.json: cases[0]: key 'op': expected the name of an op, found 'matmul'");
  EXPECT_EQ(message_of(R"({"op": "sample", "B": 1})"),
            "x.json: cases[0]: key 'V': expected a value, found no such key");
  EXPECT_EQ(message_of(R"({"op": "sample", "B": 1, "V": 2, "T": 3})"),
            "x.json: cases[0]: key 'T': expected a field of the op, found another key");
  EXPECT_EQ(message_of(R"({"op": "silu_mul", "T": 1, "I": 2, "x": "f64"})"),
            "x.json: cases[0]: key 'x': expected one of f32, f16, bf16, found f64");
  EXPECT_NE(message_of(R"({"op": "sample", "B": -1, "V": 2})"), "no error");
  EXPECT_NE(message_of(R"("sample")"), "no error");
  EXPECT_THROW(load_cases("/nonexistent", CaseUse::kTest), Error);
}

TEST(Arguments, TheSeedDecidesEverything) {
  const Case one{.name = {},
                 .problem = ops::LinearProblem{.T = 2, .N = 8, .K = 64, .format = ops::WeightFormat::kNvfp4},
                 .scenario = {}};
  const auto x_of = [&](uint64_t seed) {
    return bytes_of(std::get<ops::LinearArgs>(Arguments(one, seed).args()).x);
  };
  EXPECT_EQ(x_of(1), x_of(1));
  EXPECT_NE(x_of(1), x_of(2));
}

TEST(Arguments, SeesWhatIsWrittenBesideAnOutput) {
  const Case one{.name = {},
                 .problem = ops::SiluMulProblem{.T = 2, .I = 5},
                 .scenario = {.lengths = {}, .strided = true}};
  Arguments arguments(one, 1);
  const TensorView y = arguments.outputs()[0].view;
  ASSERT_GT(y.stride(0), 5);
  y.row<uint16_t>(1)[4] = 1;
  EXPECT_TRUE(arguments.is_padding_intact());
  y.row<uint16_t>(0)[5] = 1;
  EXPECT_FALSE(arguments.is_padding_intact());
  arguments.reset_outputs();
  EXPECT_TRUE(arguments.is_padding_intact());
}

TEST(Arguments, ImpossibleCasesAreErrors) {
  const auto throws = [](const ops::Problem& problem, const Scenario& scenario) {
    EXPECT_THROW(Arguments({.name = {}, .problem = problem, .scenario = scenario}, 1), Error);
  };
  throws(ops::LinearProblem{.T = 1, .N = 1, .K = 24, .format = ops::WeightFormat::kNvfp4}, {});
  const ops::IndexerProblem indexer{.T = 4, .B = 2, .heads = 1, .D = 8, .P = 4, .max_context = 9, .topk = 2};
  throws(indexer, {.lengths = {9}});
  throws(indexer, {.lengths = {9, 10}});
  throws(indexer, {.lengths = {9, 1}});
}

}  // namespace
}  // namespace sinter::measure
