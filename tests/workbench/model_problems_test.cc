// What is said of a model's steps without running one, against what running one asks for.
#include "workbench/model_problems.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/generator.h"
#include "models/tiny_checkpoint.h"

namespace sinter::workbench {
namespace {

class ModelProblems : public testing::TestWithParam<const char*> {
 protected:
  static Json config() {
    return std::string_view(GetParam()) == "glm" ? models::tiny_glm_config() : models::tiny_qwen_config();
  }
};

// Prefill over and under the indexer's choice (topk 8), decoding, and scoring: no step meets a problem that
// is not in the list for its number of tokens and its context.
TEST_P(ModelProblems, ListWhatStepsAskFor) {
  models::TinyCheckpoint tiny(config());
  models::LoadedModel loaded(tiny.write());
  const ModelFolder folder = open_model_folder(tiny.write().string());
  const Inventory inventory = take_inventory(folder);
  engine::Generator generator(*loaded.model, loaded.context);
  engine::GenerateRequest request;
  request.max_new_tokens = 4;
  request.sampling.temperature = 0;
  std::vector<ModelProblem> listed;
  for (const int64_t num_prompt : {5, 20}) {
    request.prompt.assign(static_cast<size_t>(num_prompt), 3);
    generator.generate(request);
    engine::score_tokens(*loaded.model, request.prompt, num_prompt, [](int64_t, std::span<const float>) {});
    const auto list = [&](int64_t T, int64_t context) {
      for (ModelProblem& problem : model_problems(folder.spec, inventory, T, context))
        listed.push_back(std::move(problem));
    };
    list(num_prompt, num_prompt);
    list(1, num_prompt + 1);
    list(1, num_prompt + 4);
  }

  const std::vector<ops::Problem> met = loaded.context.problems();
  EXPECT_GT(met.size(), 20u);
  for (const ops::Problem& problem : met)
    EXPECT_NE(std::ranges::find(listed, problem, &ModelProblem::problem), listed.end()) << describe(problem);
  // None is made up, but for the indexer's, whose queries a short context does not need.
  for (const ModelProblem& problem : listed)
    EXPECT_TRUE(problem.where.starts_with("indexer") || std::ranges::find(met, problem.problem) != met.end())
        << describe(problem.problem);
}

// Steps of every power of two of tokens, each problem once.
TEST_P(ModelProblems, RunProblemsHoldThoseOfEveryStepOnce) {
  models::TinyCheckpoint tiny(config());
  const ModelFolder folder = open_model_folder(tiny.write().string());
  const Inventory inventory = take_inventory(folder);
  const std::vector<ops::Problem> problems = run_problems(folder.spec, inventory, 24, 96);
  for (size_t i = 0; i < problems.size(); ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(problems[i] == problems[j]) << describe(problems[i]);
  for (const int64_t T : {1, 2, 4, 8, 16, 24})
    for (const ModelProblem& problem : model_problems(folder.spec, inventory, T, 96))
      EXPECT_NE(std::ranges::find(problems, problem.problem), problems.end()) << describe(problem.problem);
}

INSTANTIATE_TEST_SUITE_P(Models, ModelProblems, testing::Values("glm", "qwen"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace sinter::workbench
