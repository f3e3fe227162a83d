#include "engine/generator.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "device/gpu_memory.h"
#include "dispatch/gpu_runtime.h"

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

// Checked, the context filled in.
GeneratorOptions with_limits(GeneratorOptions options, int64_t max_positions) {
  check_chunk(options.chunk);
  if (options.context < 0 || options.context == 1 || options.page_tokens < 1 || options.page_tokens > 4096)
    throw Error(ErrorKind::kUsage,
                {.where = "context",
                 .expected = "two tokens or more, in pages of 1 to 4096",
                 .found = fmt::format("{} in pages of {}", options.context, options.page_tokens),
                 .mend = {}});
  check_length(options.context, max_positions, "context");
  if (options.context == 0) options.context = max_positions;
  return options;
}

GpuDecodeUse& operator+=(GpuDecodeUse& use, const std::pair<GpuCounters, GpuCounters>& step) {
  const auto& [before, after] = step;
  ++use.num_steps;
  use.num_allocations += after.num_allocations - before.num_allocations;
  use.num_synchronizations += after.num_synchronizations - before.num_synchronizations;
  use.num_kernel_launches += after.num_kernel_launches - before.num_kernel_launches;
  use.num_graph_launches += after.num_graph_launches - before.num_graph_launches;
  use.num_copies += after.num_copies - before.num_copies;
  return use;
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

// What a step on a GPU tells the host.
struct Generator::DeviceOutput {
  struct Pinned {
    int32_t id;
    float first_logit;
  };
  explicit DeviceOutput(dispatch::GpuRuntime& runtime)
      : stream(runtime.stream),
        memory(pinned_buffer(runtime.device, sizeof(Pinned))),
        written(runtime.device, GpuEvent::Kind::kUntimed) {}
  Pinned& pinned() const { return *reinterpret_cast<Pinned*>(memory.data()); }

  GpuStream& stream;
  Buffer memory;
  GpuEvent written;
};

Generator::Generator(models::Model& model, dispatch::Context& context, GeneratorOptions options)
    : model_(model),
      context_(context),
      options_(with_limits(options, model.spec().max_positions)),
      batch_(context, {.num_tokens = std::min(options_.chunk, options_.context),
                       .num_sequences = 1,
                       .num_pages = num_pages_for(options_.context, options_.page_tokens)}) {
  logits_ = context.allocate(static_cast<size_t>(model.spec().V) * sizeof(float));
  if (context.gpu() != nullptr) device_output_ = std::make_unique<DeviceOutput>(*context.gpu());
}

Generator::~Generator() {
  try {
    context_.synchronize();  // the GPU may be writing what is released now
  } catch (const Error&) {   // told by the next wait of somebody who can
  }
}

TensorView Generator::logits() const { return logits_.view(DType::kF32, {1, model_.spec().V}); }

void Generator::ensure_cache(int64_t num_tokens) {
  const int64_t num_pages = num_pages_for(num_tokens, options_.page_tokens);
  if (pool_ && pool_->num_pages() >= num_pages) return;
  graphs_.clear();
  pool_.reset();
  cache_.reset();  // before the new one, not beside it
  cache_.emplace(model_.spec(), num_pages, options_.page_tokens, model_.activation_dtype(), &context_);
  pool_.emplace(num_pages);
}

void Generator::prefill(const PageList& pages, std::span<const int32_t> ids, int64_t first_position,
                        LogitRows rows) {
  batch_.clear();
  batch_.add(pages, ids, first_position, rows);
  model_.forward(batch_.view(), *cache_, logits().slice(0, 0, batch_.num_logit_rows()));
}

bool Generator::decode(const PageList& pages, int32_t id, int64_t position) {
  batch_.clear();
  batch_.add(pages, {&id, 1}, position, LogitRows::kLast);
  if (context_.gpu() != nullptr)
    return graphs_.run(model_, batch_.view(), *cache_, logits()) == DecodeGraphs::Ran::kLaunched;
  model_.forward(batch_.view(), *cache_, logits());
  return false;
}

void Generator::draw(const GenerateRequest& request, std::span<const int32_t> history,
                     const TensorView& ids) {
  const ops::SampleParams& params = request.sampling;
  const uint64_t draw_idx = history.size() - request.prompt.size();
  // Only penalties read it, and to a GPU it has to be copied.
  const bool has_penalties =
      params.repetition_penalty != 1 || params.presence_penalty != 0 || params.frequency_penalty != 0;
  const std::span<const int32_t> seen = has_penalties ? history : std::span<const int32_t>();
  context_.run(ops::SampleProblem{.B = 1, .V = model_.spec().V}, ops::SampleArgs{.logits = logits(),
                                                                                 .params = {&params, 1},
                                                                                 .history = {&seen, 1},
                                                                                 .draw_idx = {&draw_idx, 1},
                                                                                 .ids = ids});
}

int32_t Generator::sample(const GenerateRequest& request, std::span<const int32_t> history) {
  if (context_.gpu() != nullptr) return sample_on_gpu(request, history);
  check_logits({logits().data_as<float>(), static_cast<size_t>(model_.spec().V)},
               static_cast<int64_t>(history.size()) - 1);
  int32_t id = -1;
  draw(request, history, TensorView(&id, DType::kI32, {1}));
  return id;
}

int32_t Generator::sample_on_gpu(const GenerateRequest& request, std::span<const int32_t> history) {
  const int64_t V = model_.spec().V, position = static_cast<int64_t>(history.size()) - 1;
  // All logits once, which finds a damaged row of the head; after that one of them: whatever else is damaged
  // makes the hidden state NaN, and that makes every logit NaN. Reading all costs a step about 50 us.
  if (history.size() == request.prompt.size()) {
    std::vector<float> all(static_cast<size_t>(V));
    context_.read(logits(), std::as_writable_bytes(std::span(all)));
    check_logits(all, position);
  }
  DeviceOutput& output = *device_output_;
  const TensorView ids = batch_.device_ids(1);  // of the next step
  draw(request, history, ids);
  output.stream.copy(&output.pinned().id, ids.data(), sizeof(int32_t));
  output.stream.copy(&output.pinned().first_logit, logits().data(), sizeof(float));
  output.stream.record(output.written);
  output.written.synchronize();
  check_logits({&output.pinned().first_logit, 1}, position);
  const int32_t id = output.pinned().id;
  SINTER_CHECK(id >= 0 && id < V, "the sampler drew token {} of {}", id, V);
  batch_.note_device_ids({&id, 1});
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
  const Stopwatch prefill_time;
  for (int64_t begin = 0; begin < num_prompt; begin += options_.chunk) {
    const int64_t end = std::min(begin + options_.chunk, num_prompt);
    pages.grow_to(end);
    prefill(pages,
            std::span(request.prompt).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
            begin, end == num_prompt ? LogitRows::kLast : LogitRows::kNone);
    if (request.on_prefill && !request.on_prefill(end, num_prompt)) {
      result.finish_reason = FinishReason::kCancelled;
      return result;
    }
  }
  context_.synchronize();
  result.prefill_s = prefill_time.elapsed_s();

  const GpuDevice* const gpu = context_.gpu() == nullptr ? nullptr : &context_.gpu()->device;
  if (gpu != nullptr) result.gpu.emplace();
  std::optional<GpuCounters> before;  // the step whose token is drawn next, when it is counted
  const Stopwatch decode_time;
  while (true) {
    const int32_t id = sample(request, history);
    if (before) *result.gpu += {*before, gpu->counters()};
    before.reset();
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
    if (gpu != nullptr) before = gpu->counters();
    const bool is_counted = decode(pages, id, position);
    if (gpu != nullptr && !is_counted) {
      before.reset();
      ++result.gpu->num_eager_steps;
    }
    ++result.num_decode_steps;
  }
  result.decode_s = decode_time.elapsed_s();
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
  dispatch::Context& context = model.context();
  models::Cache cache(model.spec(), num_pages, kPageTokens, model.activation_dtype(), &context);
  PagePool pool(num_pages);
  PageList pages(pool, kPageTokens);
  const int64_t num_rows = std::min(chunk, num_tokens);
  const size_t logits_bytes = static_cast<size_t>(num_rows * V) * sizeof(float);
  const Buffer logits = context.allocate(logits_bytes);
  const Buffer read_logits = context.gpu() == nullptr ? Buffer() : Buffer::host(logits_bytes);
  StepBatch batch(context, {.num_tokens = num_rows, .num_sequences = 1, .num_pages = num_pages});
  for (int64_t begin = 0; begin < num_tokens; begin += chunk) {
    const int64_t T = std::min(chunk, num_tokens - begin);
    pages.grow_to(begin + T);
    batch.clear();
    batch.add(pages, ids.subspan(static_cast<size_t>(begin), static_cast<size_t>(T)), begin, LogitRows::kAll);
    TensorView rows = logits.view(DType::kF32, {T, V});
    model.forward(batch.view(), cache, rows);
    if (context.gpu() != nullptr) {
      context.read(rows, read_logits.bytes());
      rows = read_logits.view(DType::kF32, {T, V});
    }
    for (int64_t t = 0; t < T; ++t) {
      const std::span<const float> row(rows.row<float>(t), static_cast<size_t>(V));
      check_logits(row, begin + t);
      on_logits(begin + t, row);
    }
  }
}

}  // namespace sinter::engine
