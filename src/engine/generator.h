// Text from one prompt, as token ids: prefill in chunks, then a token a step; and the logits of a given
// text. Both for one sequence; the scheduler of many is built from the same parts (StepBatch, PageList).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/gpu_device.h"
#include "engine/decode_graphs.h"
#include "engine/step_batch.h"
#include "models/model.h"

namespace sinter::engine {

struct GenerateRequest {
  std::vector<int32_t> prompt;            // not empty
  std::optional<int64_t> max_new_tokens;  // none: as many as the context holds
  ops::SampleParams sampling;
  std::vector<int32_t> stop_ids;                                // end the text and are not part of it
  std::function<bool(int64_t done, int64_t total)> on_prefill;  // after each chunk; false: stop; may be empty
  std::function<bool(int32_t id)> on_token;  // every new token; false ends the text; may be empty
};

enum class FinishReason { kStop, kMaxTokens, kContext, kCancelled };
std::string_view name(FinishReason reason);  // "stop", "max_tokens", "context", "cancelled"

// What the decode steps that were launched as graphs did beside it; a step has one wait, for its token.
struct GpuDecodeUse {
  int64_t num_steps = 0;
  int64_t num_eager_steps = 0;  // first of a bucket, or captured: not in the counts below
  uint64_t num_allocations = 0, num_synchronizations = 0, num_kernel_launches = 0, num_graph_launches = 0,
           num_copies = 0;
};

struct GenerateResult {
  std::vector<int32_t> tokens;  // without the prompt and the stop id
  FinishReason finish_reason = FinishReason::kStop;
  int64_t num_prompt_tokens = 0;
  double prefill_s = 0;  // until the logits of the first new token
  double decode_s = 0;   // of the steps after it
  int64_t num_decode_steps = 0;
  std::optional<GpuDecodeUse> gpu;  // on a GPU
  double prefill_tokens_per_s() const {
    return prefill_s > 0 ? static_cast<double>(num_prompt_tokens) / prefill_s : 0;
  }
  double decode_tokens_per_s() const {
    return decode_s > 0 ? static_cast<double>(num_decode_steps) / decode_s : 0;
  }
};

struct GeneratorOptions {
  int64_t context = 0;       // tokens of prompt and text together, at most; 0: what the model allows
  int64_t chunk = 512;       // prompt tokens a step
  int64_t page_tokens = 64;  // P
};

class Generator {
 public:
  // Model and context, the one that the model was loaded in, must outlive it. Throws Error(kLimit) for a
  // context over the model's, kUsage for options without sense.
  Generator(models::Model& model, dispatch::Context& context, GeneratorOptions options = {});
  ~Generator();

  // Checks everything before work starts: token ids in range and a prompt that leaves room for one token
  // (kLimit), sampling parameters (kUsage), memory for the cache (kMemory). The cache is as long as prompt
  // and text can become and is kept for the next request that fits. Equal requests give equal tokens, for
  // any number of threads.
  GenerateResult generate(const GenerateRequest& request);

 private:
  struct DeviceOutput;
  void ensure_cache(int64_t num_tokens);
  // Logits of the last of `ids` into logits().
  void prefill(const PageList& pages, std::span<const int32_t> ids, int64_t first_position, LogitRows rows);
  // The same of one token. True when it ran as a graph made before.
  bool decode(const PageList& pages, int32_t id, int64_t position);
  int32_t sample(const GenerateRequest& request, std::span<const int32_t> history);
  int32_t sample_on_gpu(const GenerateRequest& request, std::span<const int32_t> history);
  void draw(const GenerateRequest& request, std::span<const int32_t> history, const TensorView& ids);
  TensorView logits() const;  // [1, V]

  models::Model& model_;
  dispatch::Context& context_;
  GeneratorOptions options_;
  std::optional<models::Cache> cache_;
  std::optional<PagePool> pool_;
  StepBatch batch_;
  Buffer logits_;  // [V] f32
  std::unique_ptr<DeviceOutput> device_output_;
  DecodeGraphs graphs_;
};

// Throws Error(kLimit) naming the first position of `where` whose id is not in 0..V-1.
void check_token_ids(std::span<const int32_t> ids, int64_t V, std::string_view where);
// Throws Error(kUsage) naming the parameter.
void check_sampling(const ops::SampleParams& params);

// Teacher-forced: on_logits(position, row [V]) for every token of `ids`, in order; the row predicts the
// token after it. Runs in chunks, with a cache of its own. Errors as of generate().
void score_tokens(models::Model& model, std::span<const int32_t> ids, int64_t chunk,
                  const std::function<void(int64_t position, std::span<const float> logits)>& on_logits);

}  // namespace sinter::engine
