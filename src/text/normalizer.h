// What happens to text before it is split: NFC, Replace, Prepend, and sequences of them. The families
// served use none or NFC; anything else in tokenizer.json is refused by name.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json_fwd.h"
#include "text/regex.h"

namespace sinter::text {

class Normalizer {
 public:
  Normalizer() = default;  // changes nothing
  Normalizer(const Json& json, const std::string& where);

  bool is_identity() const { return steps_.empty(); }
  // `text` is valid UTF-8.
  std::string apply(std::string text) const;

 private:
  struct Nfc {};
  struct Replace {
    Regex pattern;
    std::string content;
  };
  struct Prepend {
    std::string prefix;
  };

  void add(const Json& json, const std::string& where);

  std::vector<std::variant<Nfc, Replace, Prepend>> steps_;
};

// Unicode's canonical composition as the tokenizers package computes it: with the characters of Unicode
// 9 (later marks neither reorder nor compose). Exposed for tests.
std::string nfc(std::string_view text);

}  // namespace sinter::text
