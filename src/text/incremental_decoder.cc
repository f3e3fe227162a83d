#include "text/incremental_decoder.h"

#include "base/error.h"
#include "text/utf8.h"

namespace sinter::text {

std::string IncrementalDecoder::push(int32_t id) {
  if (id < 0)
    throw Error(ErrorKind::kLimit, {.where = "token to decode",
                                    .expected = "an id of 0 or more",
                                    .found = fmt::format("{}", id),
                                    .mend = {}});
  if (skip_special_ && tokenizer_->is_special(id)) return {};
  pending_ += tokenizer_->token_bytes(id);
  std::string text;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Utf8Step step = utf8_step(rest);
    if (step.kind == Utf8Step::Kind::kPartial) break;
    if (step.kind == Utf8Step::Kind::kCharacter)
      text += rest.substr(0, step.size);
    else
      append_utf8(text, 0xFFFD);
    rest.remove_prefix(step.size);
  }
  pending_.erase(0, pending_.size() - rest.size());
  return text;
}

std::string IncrementalDecoder::flush() {
  std::string text;
  if (!pending_.empty()) append_utf8(text, 0xFFFD);
  pending_.clear();
  return text;
}

}  // namespace sinter::text
