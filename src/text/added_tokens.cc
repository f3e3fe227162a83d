#include "text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/utf8.h"

namespace sinter::text {
namespace {

// Bounds the work at every byte of the text.
constexpr size_t kMaxTokenBytes = 4096;

unsigned char byte_at(std::string_view text, size_t i) { return static_cast<unsigned char>(text[i]); }

// White_Space of Unicode.
bool is_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

size_t previous_character(std::string_view text, size_t end) {
  do --end;
  while ((byte_at(text, end) & 0xC0) == 0x80);
  return end;
}

size_t skip_spaces(std::string_view text, size_t position) {
  while (position < text.size()) {
    size_t next = position;
    if (!is_space(next_code_point(text, next))) break;
    position = next;
  }
  return position;
}

size_t skip_spaces_back(std::string_view text, size_t begin, size_t position) {
  while (position > begin) {
    size_t previous = previous_character(text, position);
    size_t next = previous;
    if (!is_space(next_code_point(text, next))) break;
    position = previous;
  }
  return position;
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens, const std::string& where)
    : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.content < b.content; });
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const std::string& content = tokens_[i].content;
    const auto fail = [&](std::string_view found) {
      throw Error(ErrorKind::kFormat,
                  {.where = fmt::format("{}: added token {}", where, tokens_[i].id),
                   .expected = fmt::format("its own content of 1 to {} bytes", kMaxTokenBytes),
                   .found = std::string(found),
                   .mend = {}});
    };
    if (content.empty()) fail("no content");
    if (content.size() > kMaxTokenBytes) fail(fmt::format("{} bytes", content.size()));
    if (i > 0 && tokens_[i - 1].content == content) fail(fmt::format("that of token {}", tokens_[i - 1].id));
    Range& range = by_first_byte_[byte_at(content, 0)];
    if (range.begin == range.end) range.begin = static_cast<uint32_t>(i);
    range.end = static_cast<uint32_t>(i + 1);
    if (tokens_[i].single_word && !word_character_)
      word_character_.emplace(R"([\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24B6}-\x{24E9}\x{200C}\x{200D})"
                              R"(\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}])",
                              where);
  }
}

const AddedToken* AddedTokenMatcher::match(std::string_view text) const {
  const Range range = by_first_byte_[byte_at(text, 0)];
  const AddedToken* longest = nullptr;
  auto begin = tokens_.begin() + range.begin;
  auto end = tokens_.begin() + range.end;
  // [begin, end) has the tokens that share their first `depth` bytes with the text.
  for (size_t depth = 1; begin != end; ++depth) {
    if (begin->content.size() == depth) {
      longest = &*begin;
      ++begin;
    }
    if (depth == text.size()) break;
    const unsigned char next = byte_at(text, depth);
    begin = std::partition_point(begin, end,
                                 [&](const AddedToken& t) { return byte_at(t.content, depth) < next; });
    end = std::partition_point(begin, end,
                               [&](const AddedToken& t) { return byte_at(t.content, depth) <= next; });
  }
  return longest;
}

void AddedTokenMatcher::split(std::string_view text, bool allow_special,
                              const std::function<void(std::string_view)>& on_text,
                              const std::function<void(int32_t)>& on_token) const {
  std::vector<Span> matches;
  const auto is_word = [&](size_t position) {
    size_t end = position;
    next_code_point(text, end);
    word_character_->find_all(text.substr(position, end - position), matches);
    return !matches.empty();
  };
  size_t done = 0;       // everything before it has been handed out
  Span spaces = {0, 0};  // the last run swallowed on the right: many tokens may end in it
  for (size_t i = 0; i < text.size();) {
    const Range range = by_first_byte_[byte_at(text, i)];
    const AddedToken* token = range.begin == range.end ? nullptr : match(text.substr(i));
    if (token == nullptr) {
      ++i;
      continue;
    }
    size_t begin = i;
    size_t end = i + token->content.size();
    i = end;
    if (token->special && !allow_special) continue;
    if (token->single_word &&
        ((begin > 0 && is_word(previous_character(text, begin))) || (end < text.size() && is_word(end))))
      continue;
    if (token->lstrip) begin = std::max(skip_spaces_back(text, std::min(done, begin), begin), done);
    if (token->rstrip) {
      if (end < spaces.begin || end >= spaces.end) spaces = {end, skip_spaces(text, end)};
      end = spaces.end;
    }
    if (done < begin) on_text(text.substr(done, begin - done));
    on_token(token->id);
    done = end;
  }
  if (done < text.size()) on_text(text.substr(done));
}

}  // namespace sinter::text
