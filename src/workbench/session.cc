#include "workbench/session.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "device/device_info.h"
#include "dispatch/gpu_runtime.h"
#include "engine/generator.h"
#include "workbench/model_problems.h"

namespace sinter::workbench {

namespace {

std::optional<GpuDevice> choose_device(const SessionOptions& options) {
  const bool needs_cpu =
      options.dispatch.reference || !options.dispatch.pack_weights ||
      std::ranges::any_of(options.dispatch.forced, [](const auto& forced) {
        const kernels::KernelInfo* kernel = kernels::find_kernel(forced.second);
        return forced.second == "cpu" || (kernel != nullptr && kernel->processor == kernels::Processor::kCpu);
      });
  if (needs_cpu && options.device.kind == DeviceChoice::Kind::kAuto) return std::nullopt;
  return open_device(options.device);
}

dispatch::Context make_context(const SessionOptions& options, ThreadPool& pool) {
  if (const std::optional<GpuDevice> gpu = choose_device(options))
    return dispatch::Context(*gpu, pool, options.dispatch);
  return dispatch::Context(host_device(), pool, options.dispatch);
}

// Longer contexts compile as they come: few programs depend on the length.
constexpr int64_t kCompiledContext = 4096;

}  // namespace

Session::Session(ModelFolder folder, const SessionOptions& options)
    : folder_(std::move(folder)), pool_(options.num_threads), context_(make_context(options, pool_)) {
  folder_.require_weights();
  if (context_.gpu() != nullptr) {
    const int64_t context = std::min(kCompiledContext, folder_.spec.max_positions);
    const int64_t chunk = std::min(options.chunk, context);
    context_.load_programs(run_problems(folder_.spec, take_inventory(folder_), chunk, context),
                           [&](const jit::Progress& progress) {
                             if (options.compile_progress)
                               options.compile_progress(static_cast<int64_t>(progress.num_done),
                                                        static_cast<int64_t>(progress.num_total));
                           });
  }
  model_ = models::load_model(folder_.checkpoint, context_, options.progress);
}

text::Tokenizer load_tokenizer(const ModelFolder& folder) {
  text::Tokenizer tokenizer = text::Tokenizer::load(folder.path());
  if (tokenizer.vocab_size() > folder.spec.V)
    throw Error(ErrorKind::kFormat,
                {.where = (folder.path() / "tokenizer.json").string(),
                 .expected = fmt::format("at most {} tokens, the rows of the embedding", folder.spec.V),
                 .found = fmt::format("{}", tokenizer.vocab_size()),
                 .mend = "the tokenizer belongs to another model"});
  return tokenizer;
}

ops::SampleParams sampling_defaults(const checkpoint::Checkpoint& checkpoint, ops::SampleParams params,
                                    std::vector<std::string>& found) {
  if (checkpoint.generation_config() == nullptr) return params;
  const JsonObject config(*checkpoint.generation_config(),
                          (checkpoint.folder() / "generation_config.json").string());
  const auto take = [&](const char* key, float& value) {
    if (!config.has(key)) return;
    value = static_cast<float>(config.get_double(key));
    found.push_back(fmt::format("{} {}", key, value));
  };
  take("temperature", params.temperature);
  take("top_p", params.top_p);
  take("min_p", params.min_p);
  take("repetition_penalty", params.repetition_penalty);
  if (config.has("top_k")) {
    params.top_k = static_cast<int32_t>(config.get_int("top_k", 0, std::numeric_limits<int32_t>::max()));
    found.push_back(fmt::format("top_k {}", params.top_k));
  }
  if (!config.get_bool_or("do_sample", true)) {
    params.temperature = 0;
    found.push_back("do_sample false");
  }
  try {
    engine::check_sampling(params);
  } catch (const Error& error) {  // not the caller's fault: say whose
    ErrorDetail detail = error.detail();
    detail.where = config.where(detail.where);
    throw Error(ErrorKind::kFormat, std::move(detail));
  }
  return params;
}

std::vector<int32_t> stop_ids(const ModelFolder& folder) {
  std::vector<int64_t> ids = folder.spec.eos_ids;
  if (folder.checkpoint.generation_config() != nullptr) {
    const JsonObject config(*folder.checkpoint.generation_config(),
                            (folder.path() / "generation_config.json").string());
    const std::vector<int64_t> more = config.get_ints("eos_token_id", 0, folder.spec.V - 1);
    ids.insert(ids.end(), more.begin(), more.end());
  }
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return std::vector<int32_t>(ids.begin(), ids.end());
}

}  // namespace sinter::workbench
