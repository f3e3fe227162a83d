#include "text/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "text/pattern_json.h"

namespace sinter::text {
namespace {

constexpr size_t kMaxStages = 64;

// GPT-2's, which ByteLevel brings with it.
constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

SplitBehavior read_behavior(const JsonObject& object) {
  const std::string name = object.get_string("behavior");
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  throw Error(ErrorKind::kFormat,
              {.where = object.where("behavior"),
               .expected = "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous",
               .found = fmt::format("'{}'", name),
               .mend = {}});
}

struct Part {
  Span span;
  bool is_match;
};

// Matches and what is between them, in order.
void cover(const std::vector<Span>& matches, size_t size, bool invert, std::vector<Part>& parts) {
  parts.clear();
  size_t end = 0;
  for (const Span& match : matches) {
    if (end != match.begin) parts.push_back({{end, match.begin}, invert});
    parts.push_back({match, !invert});
    end = match.end;
  }
  if (end != size) parts.push_back({{end, size}, invert});
}

// Joins parts in place so that those that are left are the pieces.
void join(SplitBehavior behavior, std::vector<Part>& parts) {
  size_t kept = 0;
  bool previous = false;
  switch (behavior) {
    case SplitBehavior::kIsolated: return;
    case SplitBehavior::kRemoved:
      std::erase_if(parts, [](const Part& part) { return part.is_match; });
      return;
    case SplitBehavior::kContiguous:
    case SplitBehavior::kMergedWithPrevious:
      for (const Part& part : parts) {
        const bool joins =
            behavior == SplitBehavior::kContiguous ? part.is_match == previous : part.is_match && !previous;
        previous = part.is_match;
        if (joins && kept > 0)
          parts[kept - 1].span.end = part.span.end;
        else
          parts[kept++] = part;
      }
      parts.resize(kept);
      return;
    case SplitBehavior::kMergedWithNext:
      std::reverse(parts.begin(), parts.end());
      for (const Part& part : parts) {
        const bool joins = part.is_match && !previous;
        previous = part.is_match;
        if (joins && kept > 0)
          parts[kept - 1].span.begin = part.span.begin;
        else
          parts[kept++] = part;
      }
      parts.resize(kept);
      std::reverse(parts.begin(), parts.end());
      return;
  }
}

void add_prefix_spaces(Pieces& pieces) {
  const auto has_space = [&](const Span& span) { return pieces.text[span.begin] == ' '; };
  if (std::all_of(pieces.spans.begin(), pieces.spans.end(), has_space)) return;
  std::string text;
  for (Span& span : pieces.spans) {
    const size_t begin = text.size();
    if (!has_space(span)) text.push_back(' ');
    text.append(pieces.text.substr(span.begin, span.end - span.begin));
    span = {begin, text.size()};
  }
  pieces.storage = std::move(text);
  pieces.text = pieces.storage;
}

}  // namespace

PreTokenizer::PreTokenizer(const Json& json, const std::string& where) {
  add(json, where);
  if (!has_byte_level_)
    throw Error(ErrorKind::kUnsupported, {.where = where,
                                          .expected = "a last part 'ByteLevel'",
                                          .found = "none",
                                          .mend = "only byte-level BPE is implemented"});
}

void PreTokenizer::add(const Json& json, const std::string& where) {
  const JsonObject object(json, where);
  const std::string type = object.get_string("type");
  if (type == "Sequence") {
    for (const Json& part : list_at(object, "pretokenizers")) add(part, where);
    return;
  }
  if (has_byte_level_)
    throw Error(ErrorKind::kUnsupported, {.where = where,
                                          .expected = "nothing after 'ByteLevel'",
                                          .found = fmt::format("'{}'", type),
                                          .mend = {}});
  if (stages_.size() == kMaxStages)
    throw Error(ErrorKind::kLimit, {.where = where,
                                    .expected = fmt::format("at most {} parts", kMaxStages),
                                    .found = "more",
                                    .mend = {}});
  if (type == "Split") {
    stages_.push_back(
        {read_pattern(object), read_behavior(object), object.get_bool_or("invert", false), false});
  } else if (type == "Digits") {
    const bool individual = object.get_bool_or("individual_digits", false);
    stages_.push_back({Regex(R"(\p{N})", where),
                       individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous, false, false});
  } else if (type == "ByteLevel") {
    has_byte_level_ = true;
    Stage stage;
    stage.add_prefix_space = object.get_bool_or("add_prefix_space", true);
    if (object.get_bool_or("use_regex", true)) stage.pattern.emplace(kByteLevelPattern, where);
    stages_.push_back(std::move(stage));
  } else {
    throw Error(ErrorKind::kUnsupported, {.where = where,
                                          .expected = "Split, Digits, ByteLevel or Sequence",
                                          .found = fmt::format("'{}'", type),
                                          .mend = {}});
  }
}

void PreTokenizer::split(std::string_view text, Pieces& pieces) const {
  pieces.text = text;
  pieces.spans.clear();
  if (text.empty()) return;
  pieces.spans.push_back({0, text.size()});
  std::vector<Span> matches;
  std::vector<Part> parts;
  std::vector<Span> spans;
  for (const Stage& stage : stages_) {
    if (stage.add_prefix_space) add_prefix_spaces(pieces);
    if (!stage.pattern) continue;
    spans.clear();
    for (const Span& piece : pieces.spans) {
      stage.pattern->find_all(pieces.text.substr(piece.begin, piece.end - piece.begin), matches);
      if (matches.empty() && !stage.invert) {
        spans.push_back(piece);
        continue;
      }
      cover(matches, piece.end - piece.begin, stage.invert, parts);
      join(stage.behavior, parts);
      for (const Part& part : parts)
        if (part.span.begin < part.span.end)
          spans.push_back({piece.begin + part.span.begin, piece.begin + part.span.end});
    }
    pieces.spans.swap(spans);
  }
}

}  // namespace sinter::text
