#include "text/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <new>

#include "base/error.h"
#include "base/json.h"
#include "text/pattern_json.h"
#include "text/utf8.h"

namespace sinter::text {
namespace {

constexpr size_t kMaxSteps = 64;

// Replace and Prepend may grow text, a chain of them without bound.
constexpr size_t kMaxGrowth = 64;
constexpr size_t kMaxGrowthBytes = 1 << 16;

// Marks that utf8proc knows and the reference does not, and the one pair that only utf8proc composes
// (U+11935, U+11930). Text is composed between them.
constexpr struct {
  uint32_t first, last;
} kLaterMarks[] = {
    {0x07FD, 0x07FD},   {0x0898, 0x089F},   {0x08CA, 0x08D3},   {0x09FE, 0x09FE},   {0x0C3C, 0x0C3C},
    {0x0D3B, 0x0D3C},   {0x0EBA, 0x0EBA},   {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},
    {0xA82C, 0xA82C},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
    {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
    {0x11930, 0x11930}, {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34},
    {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97},
    {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE},
    {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}};

bool is_later_mark(uint32_t code_point) {
  if (code_point < kLaterMarks[0].first) return false;
  const auto* after = std::upper_bound(std::begin(kLaterMarks), std::end(kLaterMarks), code_point,
                                       [](uint32_t c, const auto& range) { return c < range.first; });
  return code_point <= (after - 1)->last;
}

// False when no text with this character needs composing because of it.
bool may_need_composing(uint32_t code_point) {
  if (code_point < 0x300) return false;
  if (code_point >= 0x1100 && code_point < 0x1200) return true;  // Hangul jamo
  const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(code_point));
  const bool is_second = property->comb_index != UINT16_MAX && property->comb_index >= 0x8000;
  const bool decomposes = property->decomp_seqindex != UINT16_MAX && property->decomp_type == 0;
  return property->combining_class != 0 || is_second || decomposes;
}

bool may_need_composing(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0xCC)  // below U+0300, or inside such a character
      ++i;
    else if (may_need_composing(next_code_point(text, i)))
      return true;
  }
  return false;
}

void append_composed(std::string& out, std::string_view text) {
  if (text.empty()) return;
  utf8proc_uint8_t* composed = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &composed,
                                 static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(composed, std::free);
  if (size < 0) throw std::bad_alloc();  // the text is valid: nothing else can fail
  out.append(reinterpret_cast<const char*>(composed), static_cast<size_t>(size));
}

void check_growth(size_t bytes, size_t max_bytes) {
  if (bytes > max_bytes)
    throw Error(ErrorKind::kLimit,
                {.where = "normalised text",
                 .expected = fmt::format("at most {} bytes ({} times the text)", max_bytes, kMaxGrowth),
                 .found = fmt::format("{} bytes", bytes),
                 .mend = {}});
}

std::string replace(const Regex& pattern, std::string_view content, std::string_view text, size_t max_bytes) {
  std::vector<Span> matches;
  pattern.find_all(text, matches);
  check_growth(matches.size() * content.size(), max_bytes);
  std::string out;
  size_t end = 0;
  for (const Span& match : matches) {
    out.append(text.substr(end, match.begin - end)).append(content);
    end = match.end;
  }
  return out.append(text.substr(end));
}

}  // namespace

std::string nfc(std::string_view text) {
  if (!may_need_composing(text)) return std::string(text);
  std::string out;
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t position = i;
    if (!is_later_mark(next_code_point(text, i))) continue;
    append_composed(out, text.substr(begin, position - begin));
    out.append(text.substr(position, i - position));
    begin = i;
  }
  append_composed(out, text.substr(begin));
  return out;
}

Normalizer::Normalizer(const Json& json, const std::string& where) {
  if (!json.is_null()) add(json, where);
}

void Normalizer::add(const Json& json, const std::string& where) {
  const JsonObject object(json, where);
  const std::string type = object.get_string("type");
  if (type == "Sequence") {
    for (const Json& part : list_at(object, "normalizers")) add(part, where);
    return;
  }
  if (steps_.size() == kMaxSteps)
    throw Error(ErrorKind::kLimit, {.where = where,
                                    .expected = fmt::format("at most {} steps", kMaxSteps),
                                    .found = "more",
                                    .mend = {}});
  if (type == "NFC") {
    steps_.emplace_back(Nfc{});
  } else if (type == "Replace") {
    steps_.emplace_back(Replace{read_pattern(object), object.get_string("content")});
  } else if (type == "Prepend") {
    steps_.emplace_back(Prepend{object.get_string("prepend")});
  } else {
    throw Error(ErrorKind::kUnsupported, {.where = where,
                                          .expected = "NFC, Replace, Prepend or Sequence",
                                          .found = fmt::format("'{}'", type),
                                          .mend = {}});
  }
}

std::string Normalizer::apply(std::string text) const {
  const size_t max_bytes = kMaxGrowth * text.size() + kMaxGrowthBytes;
  for (const auto& step : steps_) {
    if (std::holds_alternative<Nfc>(step)) {
      if (may_need_composing(text)) text = nfc(text);
    } else if (const auto* change = std::get_if<Replace>(&step)) {
      text = replace(change->pattern, change->content, text, max_bytes);
    } else if (!text.empty()) {
      text.insert(0, std::get<Prepend>(step).prefix);
    }
    check_growth(text.size(), max_bytes);
  }
  return text;
}

}  // namespace sinter::text
