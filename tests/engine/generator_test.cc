#include "engine/generator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/tiny_checkpoint.h"

namespace sinter::engine {
namespace {

using models::error_of;
using models::LoadedModel;
using models::TinyCheckpoint;

std::vector<int32_t> prompt_of(int64_t num_tokens) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < num_tokens; ++i) ids.push_back(static_cast<int32_t>(i * 37 % 251));
  return ids;
}

class GeneratorTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    tiny_ = new TinyCheckpoint(models::tiny_glm_config());
    tiny_->write();
  }
  static void TearDownTestSuite() { delete tiny_; }

  static const std::filesystem::path& folder() { return tiny_->write(); }

  GenerateRequest request(int64_t prompt, int64_t max_new) {
    GenerateRequest result;
    result.prompt = prompt_of(prompt);
    result.max_new_tokens = max_new;
    result.sampling = {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .seed = 7};
    return result;
  }

 private:
  static TinyCheckpoint* tiny_;
};
TinyCheckpoint* GeneratorTest::tiny_ = nullptr;

TEST_F(GeneratorTest, TheSameTextForAnyNumberOfThreadsAndFromRunToRun) {
  std::vector<std::vector<int32_t>> texts;
  for (const int num_threads : {1, 2, 3}) {
    LoadedModel loaded(folder(), {}, num_threads);
    Generator generator(*loaded.model, loaded.context);
    for (int run = 0; run < 2; ++run) texts.push_back(generator.generate(request(20, 30)).tokens);
  }
  EXPECT_EQ(texts.front().size(), 30u);
  for (const auto& text : texts) EXPECT_EQ(text, texts.front());
}

TEST_F(GeneratorTest, SeedsDifferAndGreedyIgnoresThem) {
  LoadedModel loaded(folder());
  Generator generator(*loaded.model, loaded.context);
  GenerateRequest sampled = request(9, 24);
  const auto first = generator.generate(sampled).tokens;
  sampled.sampling.seed = 8;
  EXPECT_NE(generator.generate(sampled).tokens, first);
  sampled.sampling.temperature = 0;
  const auto greedy = generator.generate(sampled).tokens;
  sampled.sampling.seed = 9;
  EXPECT_EQ(generator.generate(sampled).tokens, greedy);
}

// Greedy text is what the logits of scoring the same text say, token by token: prefill in chunks, decoding
// and scoring agree. Past index_topk (8) and across pages.
TEST_F(GeneratorTest, GreedyTextIsTheArgmaxOfScoring) {
  LoadedModel loaded(folder(), {.reference = true});
  Generator generator(*loaded.model, loaded.context, {.chunk = 7, .page_tokens = 4});
  GenerateRequest greedy = request(17, 20);
  greedy.sampling = {.temperature = 0};
  const GenerateResult result = generator.generate(greedy);
  ASSERT_EQ(result.tokens.size(), 20u);
  std::vector<int32_t> text = greedy.prompt;
  text.insert(text.end(), result.tokens.begin(), result.tokens.end());
  int num_compared = 0;
  score_tokens(*loaded.model, text, 16, [&](int64_t position, std::span<const float> logits) {
    if (position < 16 || position >= 36) return;
    const auto best = std::ranges::max_element(logits) - logits.begin();
    EXPECT_EQ(best, text[static_cast<size_t>(position) + 1]) << position;
    ++num_compared;
  });
  EXPECT_EQ(num_compared, 20);
}

// Sequences in one step do not see each other: the logits of each are those it has alone.
TEST_F(GeneratorTest, SequencesInOneStepAreIndependent) {
  LoadedModel loaded(folder(), {.reference = true});
  const int64_t V = loaded.model->spec().V;
  const std::vector<int32_t> a = prompt_of(13), b{5, 4, 3, 2, 1, 9, 8, 7, 6, 5};
  const auto alone = [&](const std::vector<int32_t>& ids) {
    std::vector<float> last;
    score_tokens(*loaded.model, ids, 64,
                 [&](int64_t, std::span<const float> row) { last.assign(row.begin(), row.end()); });
    return last;
  };
  models::Cache cache(loaded.model->spec(), 8, 4, DType::kF32);
  PagePool pool(8);
  PageList pages_a(pool, 4), pages_b(pool, 4);
  StepBatch batch;
  // Prefill of both but for the last tokens, then one decoding step for both together.
  pages_a.grow_to(13), pages_b.grow_to(10);
  std::vector<float> logits(static_cast<size_t>(2 * V));
  batch.add(pages_a, std::span(a).first(12), 0, LogitRows::kNone);
  batch.add(pages_b, std::span(b).first(9), 0, LogitRows::kNone);
  loaded.model->forward(batch.view(), cache, {});
  batch.clear();
  batch.add(pages_a, std::span(a).last(1), 12, LogitRows::kLast);
  batch.add(pages_b, std::span(b).last(1), 9, LogitRows::kLast);
  loaded.model->forward(batch.view(), cache, TensorView(logits.data(), DType::kF32, {2, V}));
  const auto expected_a = alone(a), expected_b = alone(b);
  for (int64_t v = 0; v < V; ++v) {
    ASSERT_NEAR(logits[static_cast<size_t>(v)], expected_a[static_cast<size_t>(v)], 1e-4);
    ASSERT_NEAR(logits[static_cast<size_t>(V + v)], expected_b[static_cast<size_t>(v)], 1e-4);
  }
}

TEST_F(GeneratorTest, StopsForEveryReason) {
  LoadedModel loaded(folder());
  Generator generator(*loaded.model, loaded.context, {.context = 40});
  std::vector<int32_t> streamed;
  GenerateRequest asked = request(20, 10);
  asked.on_token = [&](int32_t id) { return streamed.push_back(id), true; };
  const GenerateResult full = generator.generate(asked);
  EXPECT_EQ(full.finish_reason, FinishReason::kMaxTokens);
  EXPECT_EQ(full.tokens, streamed);
  EXPECT_EQ(full.num_decode_steps, 9);
  EXPECT_GT(full.prefill_tokens_per_s(), 0);

  asked.stop_ids = {full.tokens[4]};
  const auto first_stop = std::ranges::find(full.tokens, full.tokens[4]) - full.tokens.begin();
  const GenerateResult stopped = generator.generate(asked);
  EXPECT_EQ(stopped.finish_reason, FinishReason::kStop);
  EXPECT_EQ(static_cast<int64_t>(stopped.tokens.size()), first_stop) << "the stop id is not part of the text";

  asked.stop_ids.clear();
  asked.on_token = [](int32_t) { return false; };
  EXPECT_EQ(generator.generate(asked).finish_reason, FinishReason::kCancelled);

  asked.on_token = {};
  asked.max_new_tokens = 1000;
  const GenerateResult long_one = generator.generate(asked);
  EXPECT_EQ(long_one.finish_reason, FinishReason::kContext);
  EXPECT_EQ(long_one.tokens.size(), 20u);
  asked.max_new_tokens.reset();
  EXPECT_EQ(generator.generate(asked).tokens, long_one.tokens);
}

TEST_F(GeneratorTest, BadRequestsAreRefusedBeforeWorkStarts) {
  LoadedModel loaded(folder());
  Generator generator(*loaded.model, loaded.context, {.context = 32});
  const auto kind = [&](auto change) {
    GenerateRequest bad = request(8, 4);
    bad.on_prefill = [](int64_t, int64_t) {
      ADD_FAILURE() << "work started";
      return true;
    };
    change(bad);
    return error_of([&] { generator.generate(bad); }).kind();
  };
  EXPECT_EQ(kind([](auto& r) { r.prompt.clear(); }), ErrorKind::kUsage);
  EXPECT_EQ(kind([](auto& r) { r.prompt[3] = 256; }), ErrorKind::kLimit);
  EXPECT_EQ(kind([](auto& r) { r.prompt[3] = -1; }), ErrorKind::kLimit);
  EXPECT_EQ(kind([](auto& r) { r.prompt = prompt_of(32); }), ErrorKind::kLimit);
  EXPECT_EQ(kind([](auto& r) { r.sampling.temperature = NAN; }), ErrorKind::kUsage);
  EXPECT_EQ(kind([](auto& r) { r.sampling.top_p = 0; }), ErrorKind::kUsage);
  EXPECT_EQ(kind([](auto& r) { r.sampling.top_k = -1; }), ErrorKind::kUsage);
  EXPECT_EQ(kind([](auto& r) { r.sampling.min_p = 2; }), ErrorKind::kUsage);
  EXPECT_EQ(kind([](auto& r) { r.sampling.repetition_penalty = 0; }), ErrorKind::kUsage);

  const auto refused = [&](GeneratorOptions options) {
    return error_of([&] { Generator(*loaded.model, loaded.context, options); }).kind();
  };
  EXPECT_EQ(refused({.context = 97}), ErrorKind::kLimit) << "max_position_embeddings is 96";
  EXPECT_EQ(refused({.chunk = 0}), ErrorKind::kUsage);
  EXPECT_EQ(error_of([&] {
              score_tokens(*loaded.model, prompt_of(97), 8, [](int64_t, std::span<const float>) {});
            }).kind(),
            ErrorKind::kLimit);
  EXPECT_EQ(error_of([&] {
              score_tokens(*loaded.model, std::vector<int32_t>{999}, 8,
                           [](int64_t, std::span<const float>) {});
            }).kind(),
            ErrorKind::kLimit);
}

TEST_F(GeneratorTest, ACacheThatCannotFitIsOneError) {
  const models::DecoderSpec spec = models::read_decoder_spec(models::tiny_glm_config(), "config.json");
  for (const int64_t num_pages : {int64_t{1} << 40, int64_t{1} << 62})
    EXPECT_EQ(error_of([&] { models::Cache(spec, num_pages, 64, DType::kBF16); }).kind(), ErrorKind::kMemory);
}

}  // namespace
}  // namespace sinter::engine
