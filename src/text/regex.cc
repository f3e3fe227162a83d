#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.h"

#include <pcre2.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/error.h"
#include "text/regex_translation.h"
#include "text/unicode_stand_in.h"

namespace sinter::text {
namespace {

constexpr size_t kMaxPatternBytes = size_t{1} << 15;
constexpr size_t kMaxJitStackBytes = size_t{16} << 20;
constexpr uint32_t kMaxHeapKib = 64 << 10;  // of the interpreter

template <auto free>
struct With {
  template <class T>
  void operator()(T* object) const {
    free(object);
  }
};

std::string message(int code) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

// What a search writes to, one per thread and for all patterns.
struct MatchState {
  MatchState()
      : data(pcre2_match_data_create(1, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(32 << 10, kMaxJitStackBytes, nullptr)) {
    if (!data || !context) throw std::bad_alloc();
    pcre2_set_heap_limit(context.get(), kMaxHeapKib);
    if (stack) pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }

  std::unique_ptr<pcre2_match_data, With<pcre2_match_data_free>> data;
  std::unique_ptr<pcre2_match_context, With<pcre2_match_context_free>> context;
  std::unique_ptr<pcre2_jit_stack, With<pcre2_jit_stack_free>> stack;
};

}  // namespace

void Regex::Free::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

Regex::Regex(std::string_view pattern, const std::string& where)
    : Regex(translate_oniguruma(pattern, where), where, nullptr) {}

Regex Regex::literal(std::string_view text, std::string where) {
  return Regex(quote_for_pcre2(text), std::move(where), nullptr);
}

Regex::Regex(std::string pattern, std::string where, std::nullptr_t)
    : where_(std::move(where)), pattern_(std::move(pattern)) {
  if (pattern_.size() > kMaxPatternBytes)
    throw Error(ErrorKind::kLimit,
                {.where = where_,
                 .expected = fmt::format("a pattern of at most {} bytes", kMaxPatternBytes),
                 .found = fmt::format("{} bytes", pattern_.size()),
                 .mend = {}});
  std::unique_ptr<pcre2_compile_context, With<pcre2_compile_context_free>> context(
      pcre2_compile_context_create(nullptr));
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern_.data()), pattern_.size(),
                            PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_UTF_CHECK, &error, &offset,
                            context.get()));
  if (!code_)
    throw Error(ErrorKind::kFormat,
                {.where = where_,
                 .expected = "a regular expression",
                 .found = fmt::format("\"{}\": {} at byte {}", pattern_, message(error), offset),
                 .mend = {}});
  has_jit_ = pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE) == 0;
}

void Regex::find_all(std::string_view subject, std::vector<Span>& matches) const {
  matches.clear();
  thread_local MatchState state;
  thread_local std::string replaced;
  const std::string_view text = replace_with_stand_ins(subject, replaced) ? replaced : subject;
  const auto* bytes = reinterpret_cast<PCRE2_SPTR>(text.empty() ? "" : text.data());
  // A good pattern needs a few steps per byte: a long run of spaces is tried to its end and given back.
  pcre2_set_match_limit(state.context.get(),
                        static_cast<uint32_t>(std::min<size_t>(10'000'000 + 50 * text.size(), UINT32_MAX)));
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(state.data.get());
  for (size_t start = 0; start <= text.size();) {
    int count = has_jit_ ? pcre2_jit_match(code_.get(), bytes, text.size(), start, PCRE2_NO_UTF_CHECK,
                                           state.data.get(), state.context.get())
                         : PCRE2_ERROR_JIT_STACKLIMIT;
    // The interpreter keeps its stack on the heap, which may grow further.
    if (count == PCRE2_ERROR_JIT_STACKLIMIT)
      count = pcre2_match(code_.get(), bytes, text.size(), start, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                          state.data.get(), state.context.get());
    if (count == PCRE2_ERROR_NOMATCH) return;
    if (count < 0)
      throw Error(ErrorKind::kLimit, {.where = where_,
                                      .expected = "a pattern that matches in bounded time and memory",
                                      .found = fmt::format("\"{}\" on a text of {} bytes: {}", pattern_,
                                                           text.size(), message(count)),
                                      .mend = {}});
    // \K is refused, so a match never ends before it starts.
    const Span match{bounds[0], bounds[1]};
    if (match.begin == match.end && !matches.empty() && matches.back().end == match.end) {
      // Nothing new here: one character on.
      start = match.end + 1;
      while (start < text.size() && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) ++start;
      continue;
    }
    matches.push_back(match);
    start = match.end;
  }
}

}  // namespace sinter::text
