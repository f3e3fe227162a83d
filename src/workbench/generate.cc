#include "workbench/generate.h"

#include "text/incremental_decoder.h"

namespace sinter::workbench {

GenerateResult generate(Session& session, const text::Tokenizer* tokenizer, std::vector<int32_t> prompt,
                        const GenerateOptions& options) {
  GenerateResult result;
  std::optional<text::IncrementalDecoder> decoder;
  if (tokenizer != nullptr) decoder.emplace(*tokenizer, /*skip_special=*/true);
  const auto add_text = [&](const std::string& piece) {
    if (piece.empty()) return;
    result.text += piece;
    if (options.on_text) options.on_text(piece);
  };
  engine::GenerateRequest request{.prompt = std::move(prompt),
                                  .max_new_tokens = options.max_new_tokens,
                                  .sampling = options.sampling,
                                  .stop_ids = {},
                                  .on_prefill =
                                      [&](int64_t done, int64_t total) {
                                        if (options.on_prefill) options.on_prefill(done, total);
                                        return !options.is_cancelled || !options.is_cancelled();
                                      },
                                  .on_token =
                                      [&](int32_t id) {
                                        if (decoder) add_text(decoder->push(id));
                                        return !options.is_cancelled || !options.is_cancelled();
                                      }};
  if (!options.ignore_eos) request.stop_ids = stop_ids(session.folder());
  engine::Generator generator(session.model(), session.context(), options.engine);
  result.run = generator.generate(request);
  if (decoder) add_text(decoder->flush());
  return result;
}

}  // namespace sinter::workbench
