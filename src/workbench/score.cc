#include "workbench/score.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/file_map.h"
#include "base/json.h"
#include "checkpoint/safetensors_writer.h"
#include "engine/generator.h"

namespace sinter::workbench {
namespace {

// log softmax(logits)[id] in double: the sum over a hundred thousand terms would lose digits in float.
double logprob(std::span<const float> logits, int32_t id) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return static_cast<double>(logits[static_cast<size_t>(id)]) - largest - std::log(sum);
}

}  // namespace

ScoreResult score(Session& session, std::span<const int32_t> ids, const ScoreOptions& options) {
  models::Model& model = session.model();
  const int64_t V = model.spec().V, num_tokens = static_cast<int64_t>(ids.size());
  if (num_tokens < 2)
    throw Error(ErrorKind::kLimit, {.where = options.where,
                                    .expected = "two tokens at least: the first predicts the second",
                                    .found = fmt::format("{}", num_tokens),
                                    .mend = ""});
  engine::check_token_ids(ids, V, options.where);
  if (options.window == 1)
    throw Error(ErrorKind::kUsage,
                {.where = "--window",
                 .expected = "0 for one piece, or two tokens at least: the first predicts the second",
                 .found = "1",
                 .mend = ""});
  const int64_t window = options.window > 0 ? std::min(options.window, num_tokens) : num_tokens;
  if (window > model.spec().max_positions)
    throw Error(ErrorKind::kLimit, {.where = options.window > 0 ? "--window" : options.where,
                                    .expected = fmt::format("at most {} tokens, the model's context",
                                                            model.spec().max_positions),
                                    .found = fmt::format("{}", window),
                                    .mend = "--window N cuts it into pieces"});
  std::optional<checkpoint::SafetensorsWriter> logits_file;
  if (options.logits_path)
    logits_file.emplace(*options.logits_path,
                        std::vector<checkpoint::TensorSpec>{{"logits", DType::kF32, Shape{num_tokens, V}}});

  ScoreResult result{.num_tokens = num_tokens, .logprobs = std::vector<double>(ids.size(), 0.0)};
  double sum = 0;
  for (int64_t begin = 0; begin < num_tokens; begin += window) {
    const int64_t end = std::min(begin + window, num_tokens);
    const auto on_logits = [&](int64_t position, std::span<const float> logits) {
      const int64_t token_idx = begin + position;
      if (logits_file) logits_file->append(0, std::as_bytes(logits));
      if (options.progress) options.progress(token_idx + 1, num_tokens);
      if (token_idx + 1 >= end) return;
      const auto next = static_cast<size_t>(token_idx + 1);
      result.logprobs[next] = logprob(logits, ids[next]);
      sum += result.logprobs[next];
      ++result.num_predicted;
    };
    engine::score_tokens(model, ids.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
                         options.chunk, on_logits);
  }
  if (logits_file) logits_file->finish();
  result.nll = result.num_predicted > 0 ? -sum / static_cast<double>(result.num_predicted) : 0;
  result.perplexity = std::exp(result.nll);
  return result;
}

std::vector<int32_t> read_token_file(const std::filesystem::path& path) {
  const Json json = parse_json_file(path, 2);
  const auto fail = [&](std::string found) {
    throw Error(ErrorKind::kFormat, {.where = path.string(),
                                     .expected = "a JSON array of token ids",
                                     .found = std::move(found),
                                     .mend = ""});
  };
  if (!json.is_array()) fail(json.type_name());
  std::vector<int32_t> ids;
  ids.reserve(json.size());
  for (size_t i = 0; i < json.size(); ++i) {
    if (!json[i].is_number_integer()) fail(fmt::format("{} at position {}", json[i].type_name(), i));
    const bool is_id = json[i].is_number_unsigned() && json[i].get<uint64_t>() <= INT32_MAX;
    if (!is_id) fail(fmt::format("{} at position {}", json[i].dump(), i));
    ids.push_back(json[i].get<int32_t>());
  }
  return ids;
}

}  // namespace sinter::workbench
