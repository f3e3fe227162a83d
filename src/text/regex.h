// A compiled pattern of tokenizer.json: PCRE2 with its JIT, reading what Oniguruma would read.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct pcre2_real_code_8;

namespace sinter::text {

struct Span {
  size_t begin;
  size_t end;
  bool operator==(const Span&) const = default;
};

class Regex {
 public:
  // Throws Error(kUnsupported) for what PCRE2 would read differently, kFormat for a broken pattern.
  Regex(std::string_view pattern, const std::string& where);
  static Regex literal(std::string_view text, std::string where);

  // All matches in `subject` (valid UTF-8), left to right, replacing what `matches` held. An empty match
  // counts unless it touches the match before. Throws Error(kLimit) when the pattern backtracks without
  // end. Safe from many threads.
  void find_all(std::string_view subject, std::vector<Span>& matches) const;

 private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };
  Regex(std::string pattern, std::string where, std::nullptr_t);

  std::string where_;
  std::string pattern_;  // of PCRE2, for errors
  std::unique_ptr<pcre2_real_code_8, Free> code_;
  bool has_jit_ = false;
};

}  // namespace sinter::text
