// Text from tokens as they are generated. A token may end inside a character: its bytes wait until the
// character is whole.
#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer.h"

namespace sinter::text {

class IncrementalDecoder {
 public:
  // `tokenizer` has to outlive this.
  explicit IncrementalDecoder(const Tokenizer& tokenizer, bool skip_special = false)
      : tokenizer_(&tokenizer), skip_special_(skip_special) {}

  // The text that is certain now, always valid UTF-8. All pushes and the flush together are what
  // Tokenizer::decode gives.
  std::string push(int32_t id);
  // What waits, as U+FFFD; starts anew.
  std::string flush();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_;
  std::string pending_;  // at most 3 bytes between calls
};

}  // namespace sinter::text
