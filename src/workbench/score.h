// Log-probabilities of a given text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "workbench/session.h"

namespace sinter::workbench {

struct ScoreOptions {
  int64_t chunk = 512;
  // The text is cut into windows of so many tokens that do not see each other; 0: one piece.
  int64_t window = 0;
  std::string where = "text";                             // where the tokens come from, for errors
  std::optional<std::filesystem::path> logits_path = {};  // float32 [T, V], safetensors, tensor "logits"
  std::function<void(int64_t done, int64_t total)> progress = {};
};

struct ScoreResult {
  int64_t num_tokens = 0;     // of the text
  int64_t num_predicted = 0;  // all but the first of each window
  double nll = 0;             // mean, in nats
  double perplexity = 0;
  std::vector<double> logprobs;  // of each token given those before it; 0 for the first of a window
};

// Throws Error(kLimit) for ids out of range and texts over the context.
ScoreResult score(Session& session, std::span<const int32_t> ids, const ScoreOptions& options);

// A JSON array of token ids.
std::vector<int32_t> read_token_file(const std::filesystem::path& path);

}  // namespace sinter::workbench
