#include "engine/generator.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>

#include "base/error.h"

namespace sinter::engine {
namespace {

int64_t num_pages_for(int64_t num_tokens, int64_t P) { return (num_tokens + P - 1) / P; }

class Stopwatch {
 public:
  double elapsed_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void check_chunk(int64_t chunk) {
  constexpr int64_t kMaxChunk = int64_t{1} << 20;
  if (chunk < 1 || chunk > kMaxChunk)
    throw Error(ErrorKind::kUsage, {.where = "chunk",
                                    .expected = fmt::format("1 to {} tokens", kMaxChunk),
                                    .found = fmt::format("{}", chunk),
                                    .mend = {}});
}

void check_length(int64_t num_tokens, int64_t limit, std::string_view what) {
  if (num_tokens > limit)
    throw Error(ErrorKind::kLimit, {.where = std::string(what),
                                    .expected = fmt::format("at most {} tokens", limit),
                                    .found = fmt::format("{}", num_tokens),
                                    .mend = {}});
}

// Damage anywhere in a model ends here as NaN or infinity. Counted rather than searched for: that takes
// vector instructions, a few microseconds a row.
void check_logits(std::span<const float> logits, int64_t position) {
  const auto is_finite = [](float logit) {
    constexpr uint32_t kExponent = 0x7f800000;
    return (std::bit_cast<uint32_t>(logit) & kExponent) != kExponent;
  };
  int64_t num_finite = 0;
  for (const float logit : logits) num_finite += is_finite(logit) ? 1 : 0;
  if (num_finite == static_cast<int64_t>(logits.size())) return;
  const float first = *std::ranges::find_if_not(logits, is_finite);
  throw Error(ErrorKind::kFormat, {.where = fmt::format("logits of position {}", position),
                                   .expected = "finite numbers",
                                   .found = std::isnan(first) ? "NaN" : "an infinity",
                                   .mend = "a weight of the checkpoint may be damaged"});
}

}  // namespace

std::string_view name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop: return "stop";
    case FinishReason::kMaxTokens: return "max_tokens";
    case FinishReason::kContext: return "context";
    case FinishReason::kCancelled: return "cancelled";
  }
  return "?";
}

void check_token_ids(std::span<const int32_t> ids, int64_t V, std::string_view where) {
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || ids[i] >= V)
      throw Error(ErrorKind::kLimit, {.where = fmt::format("{}: token {}", where, i),
                                      .expected = fmt::format("an id from 0 to {}", V - 1),
                                      .found = fmt::format("{}", ids[i]),
                                      .mend = {}});
}

void check_sampling(const ops::SampleParams& params) {
  const auto expect = [](bool holds, std::string_view parameter, std::string_view expected, auto found) {
    if (!holds)
      throw Error(ErrorKind::kUsage, {.where = std::string(parameter),
                                      .expected = std::string(expected),
                                      .found = fmt::format("{}", found),
                                      .mend = {}});
  };
  // Written so that NaN fails.
  expect(params.temperature >= 0 && params.temperature <= 100, "temperature", "a number from 0 to 100",
         params.temperature);
  expect(params.top_k >= 0, "top_k", "0 (all) or more", params.top_k);
  expect(params.top_p > 0 && params.top_p <= 1, "top_p", "a number over 0 and at most 1", params.top_p);
  expect(params.min_p >= 0 && params.min_p <= 1, "min_p", "a number from 0 to 1", params.min_p);
  expect(params.repetition_penalty > 0 && params.repetition_penalty <= 100, "repetition_penalty",
         "a number over 0 and at most 100", params.repetition_penalty);
  expect(std::abs(params.presence_penalty) <= 100, "presence_penalty", "a number from -100 to 100",
         params.presence_penalty);
  expect(std::abs(params.frequency_penalty) <= 100, "frequency_penalty", "a number from -100 to 100",
         params.frequency_penalty);
}

Generator::Generator(models::Model& model, dispatch::Context& context, GeneratorOptions options)
    : model_(model), context_(context), options_(options) {
  check_chunk(options.chunk);
  const int64_t max_positions = model.spec().max_positions;
  if (options.context < 0 || options.context == 1 || options.page_tokens < 1 || options.page_tokens > 4096)
    throw Error(ErrorKind::kUsage,
                {.where = "context",
                 .expected = "two tokens or more, in pages of 1 to 4096",
                 .found = fmt::format("{} in pages of {}", options.context, options.page_tokens),
                 .mend = {}});
  check_length(options.context, max_positions, "context");
  if (options_.context == 0) options_.context = max_positions;
  logits_.resize(static_cast<size_t>(model.spec().V));
}

void Generator::ensure_cache(int64_t num_tokens) {
  const int64_t num_pages = num_pages_for(num_tokens, options_.page_tokens);
  if (pool_ && pool_->num_pages() >= num_pages) return;
  pool_.reset();
  cache_.reset();  // before the new one, not beside it
  cache_.emplace(model_.spec(), num_pages, options_.page_tokens, model_.activation_dtype());
  pool_.emplace(num_pages);
}

void Generator::step(const PageList& pages, std::span<const int32_t> ids, int64_t first_position,
                     LogitRows rows) {
  batch_.clear();
  batch_.add(pages, ids, first_position, rows);
  model_.forward(batch_.view(), *cache_,
                 TensorView(logits_.data(), DType::kF32, {batch_.num_logit_rows(), model_.spec().V}));
}

int32_t Generator::sample(const GenerateRequest& request, std::span<const int32_t> history) {
  const uint64_t draw_idx = history.size() - request.prompt.size();
  const int64_t V = model_.spec().V;
  check_logits(logits_, static_cast<int64_t>(history.size()) - 1);
  int32_t id = -1;
  context_.run(ops::SampleProblem{.B = 1, .V = V},
               ops::SampleArgs{.logits = TensorView(logits_.data(), DType::kF32, {1, V}),
                               .params = {&request.sampling, 1},
                               .history = {&history, 1},
                               .draw_idx = {&draw_idx, 1},
                               .ids = TensorView(&id, DType::kI32, {1})});
  return id;
}

GenerateResult Generator::generate(const GenerateRequest& request) {
  const auto num_prompt = static_cast<int64_t>(request.prompt.size());
  if (num_prompt == 0)
    throw Error(ErrorKind::kUsage,
                {.where = "prompt", .expected = "at least one token", .found = "none", .mend = {}});
  check_sampling(request.sampling);
  check_token_ids(request.prompt, model_.spec().V, "prompt");
  // One token of text needs a place too.
  check_length(num_prompt, options_.context - 1, "prompt");
  const int64_t room = options_.context - num_prompt;
  const int64_t max_new = std::min(room, request.max_new_tokens.value_or(room));
  GenerateResult result;
  result.num_prompt_tokens = num_prompt;
  result.finish_reason =
      request.max_new_tokens.value_or(room + 1) <= room ? FinishReason::kMaxTokens : FinishReason::kContext;
  if (max_new <= 0) return result;
  ensure_cache(num_prompt + max_new);

  std::vector<int32_t> history = request.prompt;
  history.reserve(static_cast<size_t>(num_prompt + max_new));
  PageList pages(*pool_, options_.page_tokens);
  const Stopwatch prefill;
  for (int64_t begin = 0; begin < num_prompt; begin += options_.chunk) {
    const int64_t end = std::min(begin + options_.chunk, num_prompt);
    pages.grow_to(end);
    step(pages,
         std::span(request.prompt).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
         begin, end == num_prompt ? LogitRows::kLast : LogitRows::kNone);
    if (request.on_prefill) request.on_prefill(end, num_prompt);
  }
  result.prefill_s = prefill.elapsed_s();

  const Stopwatch decode;
  while (true) {
    const int32_t id = sample(request, history);
    if (std::ranges::find(request.stop_ids, id) != request.stop_ids.end()) {
      result.finish_reason = FinishReason::kStop;
      break;
    }
    history.push_back(id);
    result.tokens.push_back(id);
    if (request.on_token && !request.on_token(id)) {
      result.finish_reason = FinishReason::kCancelled;
      break;
    }
    if (static_cast<int64_t>(result.tokens.size()) == max_new) break;
    const auto position = static_cast<int64_t>(history.size()) - 1;
    pages.grow_to(position + 1);
    step(pages, {&history.back(), 1}, position, LogitRows::kLast);
    ++result.num_decode_steps;
  }
  result.decode_s = decode.elapsed_s();
  return result;
}

void score_tokens(models::Model& model, std::span<const int32_t> ids, int64_t chunk,
                  const std::function<void(int64_t position, std::span<const float> logits)>& on_logits) {
  constexpr int64_t kPageTokens = 64;
  check_chunk(chunk);
  const auto num_tokens = static_cast<int64_t>(ids.size());
  const int64_t V = model.spec().V;
  check_token_ids(ids, V, "text");
  check_length(num_tokens, model.spec().max_positions, "text");
  if (num_tokens == 0) return;
  const int64_t num_pages = num_pages_for(num_tokens, kPageTokens);
  models::Cache cache(model.spec(), num_pages, kPageTokens, model.activation_dtype());
  PagePool pool(num_pages);
  PageList pages(pool, kPageTokens);
  const int64_t num_rows = std::min(chunk, num_tokens);
  const Buffer logits = Buffer::host(static_cast<size_t>(num_rows * V) * sizeof(float));
  StepBatch batch;
  for (int64_t begin = 0; begin < num_tokens; begin += chunk) {
    const int64_t T = std::min(chunk, num_tokens - begin);
    pages.grow_to(begin + T);
    batch.clear();
    batch.add(pages, ids.subspan(static_cast<size_t>(begin), static_cast<size_t>(T)), begin, LogitRows::kAll);
    const TensorView rows = logits.view(DType::kF32, {T, V});
    model.forward(batch.view(), cache, rows);
    for (int64_t t = 0; t < T; ++t) {
      const std::span<const float> row(rows.row<float>(t), static_cast<size_t>(V));
      check_logits(row, begin + t);
      on_logits(begin + t, row);
    }
  }
}

}  // namespace sinter::engine
