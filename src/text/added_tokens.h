// Tokens that are found in the text before anything is split or merged: <|user|>, <think> and the like.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex.h"

namespace sinter::text {

struct AddedToken {
  std::string content;  // what is looked for: normalised when `normalized` is set
  int32_t id = 0;
  bool single_word = false;  // only where no word character is next to it
  bool lstrip = false;       // swallows white space on its left
  bool rstrip = false;
  bool normalized = false;  // looked for in the normalised text
  bool special = false;
};

// Finds a set of added tokens: leftmost first, then the longest.
class AddedTokenMatcher {
 public:
  // Throws Error for contents that are empty, over-long or there twice.
  AddedTokenMatcher(std::vector<AddedToken> tokens, const std::string& where);

  bool empty() const { return tokens_.empty(); }

  // Calls `on_text` for the text between tokens (never empty) and `on_token` for tokens, in order.
  // Without `allow_special` special tokens count as text.
  void split(std::string_view text, bool allow_special, const std::function<void(std::string_view)>& on_text,
             const std::function<void(int32_t)>& on_token) const;

 private:
  // The longest token at the start of `text`, or nullptr.
  const AddedToken* match(std::string_view text) const;

  std::vector<AddedToken> tokens_;  // sorted by content
  struct Range {
    uint32_t begin = 0;
    uint32_t end = 0;
  };
  Range by_first_byte_[256];
  std::optional<Regex> word_character_;  // when any token is single_word
};

}  // namespace sinter::text
