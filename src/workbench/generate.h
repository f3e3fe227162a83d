// Text from a prompt.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "engine/generator.h"
#include "workbench/session.h"

namespace sinter::workbench {

struct GenerateOptions {
  std::optional<int64_t> max_new_tokens;
  ops::SampleParams sampling;
  bool ignore_eos = false;
  engine::GeneratorOptions engine;
  std::function<void(int64_t done, int64_t total)> on_prefill;  // may be empty
  std::function<void(std::string_view)> on_text;                // whole characters; may be empty
  std::function<bool()> is_cancelled;                           // asked after each token; may be empty
};

struct GenerateResult {
  engine::GenerateResult run;
  std::string text;
};

// Without a tokenizer the text stays empty.
GenerateResult generate(Session& session, const text::Tokenizer* tokenizer, std::vector<int32_t> prompt,
                        const GenerateOptions& options);

}  // namespace sinter::workbench
