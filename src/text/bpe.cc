#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "text/byte_level.h"
#include "text/utf8.h"

namespace sinter::text {
namespace {

// Up to this many bytes a scan for the best pair after each merge beats a heap.
constexpr size_t kMaxScanBytes = 48;

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

uint64_t mix(uint64_t key) {
  key *= 0x9E3779B97F4A7C15u;
  return key ^ key >> 32;
}

uint64_t hash(std::string_view bytes) {
  uint64_t state = bytes.size();
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    state = mix(state ^ word);
  }
  uint64_t word = 0;
  std::memcpy(&word, bytes.data(), bytes.size());
  return mix(state ^ word);
}

}  // namespace

Bpe::Bpe(const TokenizerJson& file, const Json& model, const std::string& where) : where_(where) {
  read_options(model, where);
  if (!file.has_vocab || !file.has_merges)
    throw Error(ErrorKind::kFormat, {.where = where,
                                     .expected = "'vocab' (a map) and 'merges' (a list)",
                                     .found = file.has_vocab ? "no merges" : "no such vocab",
                                     .mend = {}});
  std::unordered_map<std::string_view, int32_t> ids;
  ids.reserve(file.vocab.size());
  std::vector<bool> taken;
  for (const TokenizerJson::VocabEntry& entry : file.vocab) {
    const std::string_view token = file.at(entry.token);
    const auto id = static_cast<size_t>(entry.id);
    if (id >= taken.size()) taken.resize(std::max(id + 1, 2 * taken.size()));
    const bool is_new = ids.emplace(token, entry.id).second;
    if (taken[id] || !is_new)
      throw Error(ErrorKind::kFormat, {.where = where + ".vocab",
                                       .expected = "every token and every id once",
                                       .found = fmt::format("'{}' or its id {} again", token, entry.id),
                                       .mend = {}});
    taken[id] = true;
    if (!ignore_merges_) continue;
    if (std::optional<std::string> bytes = byte_level_bytes(token))
      pieces_.emplace(*std::move(bytes), entry.id);
  }
  for (uint32_t byte = 0; byte < 256; ++byte) {
    std::string token;
    append_utf8(token, byte_level_character(static_cast<unsigned char>(byte)));
    const auto it = ids.find(token);
    byte_ids_[byte] = it == ids.end() ? -1 : it->second;
  }
  if (!unknown_token_.empty()) {
    const auto it = ids.find(unknown_token_);
    if (it == ids.end())
      throw Error(ErrorKind::kFormat, {.where = where + ".unk_token",
                                       .expected = "a token of the vocabulary",
                                       .found = fmt::format("'{}'", unknown_token_),
                                       .mend = {}});
    unknown_id_ = it->second;
  }
  add_merges(file, ids, where);
}

void Bpe::read_options(const Json& json, const std::string& where) {
  const JsonObject model(json, where);
  const auto refuse = [&](std::string_view key, std::string_view expected, const std::string& found) {
    throw Error(ErrorKind::kUnsupported,
                {.where = model.where(key), .expected = std::string(expected), .found = found, .mend = {}});
  };
  const std::string type = model.get_string_or("type", "BPE");
  if (type != "BPE") refuse("type", "'BPE'", fmt::format("'{}'", type));
  if (model.get_double_or("dropout", 0) != 0) refuse("dropout", "none", model.at("dropout").dump());
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const std::string text = model.get_string_or(key, ""); !text.empty())
      refuse(key, "none", fmt::format("'{}'", text));
  if (model.get_bool_or("byte_fallback", false)) refuse("byte_fallback", "false (byte-level BPE)", "true");
  unknown_token_ = model.get_string_or("unk_token", "");
  fuse_unknown_ = model.get_bool_or("fuse_unk", false);
  ignore_merges_ = model.get_bool_or("ignore_merges", false);
}

void Bpe::add_merges(const TokenizerJson& file, const std::unordered_map<std::string_view, int32_t>& ids,
                     const std::string& where) {
  merges_.resize(std::bit_ceil(std::max<size_t>(16, file.merges.size() * 2)));
  const size_t mask = merges_.size() - 1;
  std::string joined;
  for (size_t i = 0; i < file.merges.size(); ++i) {
    const auto id_of = [&](std::string_view token) {
      const auto it = ids.find(token);
      if (it == ids.end())
        throw Error(ErrorKind::kFormat, {.where = fmt::format("{}: merge {}", where, i),
                                         .expected = "tokens of the vocabulary, and their joint one",
                                         .found = fmt::format("'{}'", token),
                                         .mend = {}});
      return it->second;
    };
    const std::string_view left = file.at(file.merges[i].left);
    const std::string_view right = file.at(file.merges[i].right);
    joined.assign(left).append(right);
    const uint64_t pair = pair_key(id_of(left), id_of(right));
    size_t slot = mix(pair) & mask;
    while (merges_[slot].pair != UINT64_MAX && merges_[slot].pair != pair) slot = (slot + 1) & mask;
    merges_[slot] = {pair, static_cast<uint32_t>(i), id_of(joined)};  // of equals, the last counts
  }
}

const Bpe::Merge* Bpe::find(int32_t left, int32_t right) const {
  const size_t mask = merges_.size() - 1;
  const uint64_t pair = pair_key(left, right);
  for (size_t slot = mix(pair) & mask; merges_[slot].pair != UINT64_MAX; slot = (slot + 1) & mask)
    if (merges_[slot].pair == pair) return &merges_[slot];
  return nullptr;
}

uint32_t Bpe::rank(int32_t left, int32_t right) const {
  const Merge* merge = find(left, right);
  return merge == nullptr ? kNoRank : merge->rank;
}

Bpe::Scratch::Scratch(size_t text_bytes)
    : seen_(std::bit_ceil(std::clamp<size_t>(text_bytes / 8, 16, 1 << 15))) {}

void Bpe::encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const {
  if (piece.empty()) return;
  using Seen = Scratch::Seen;
  if (piece.size() > Seen::kMaxBytes) return merge(piece, scratch, ids);
  Seen& seen = scratch.seen_[hash(piece) & (scratch.seen_.size() - 1)];
  if (seen.size == piece.size() && std::memcmp(seen.bytes, piece.data(), piece.size()) == 0) {
    for (uint32_t i = 0; i < seen.num_ids; ++i) ids.push_back(ids[seen.first_id + i]);
    return;
  }
  const size_t first_id = ids.size();
  merge(piece, scratch, ids);
  std::memcpy(seen.bytes, piece.data(), piece.size());
  seen.size = static_cast<uint8_t>(piece.size());
  seen.first_id = first_id;
  seen.num_ids = static_cast<uint32_t>(ids.size() - first_id);
}

void Bpe::merge(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const {
  if (ignore_merges_) {
    const auto it = pieces_.find(piece);
    if (it != pieces_.end()) {
      ids.push_back(it->second);
      return;
    }
  }
  start(piece, scratch.ids_);
  if (scratch.ids_.size() <= kMaxScanBytes)
    merge_by_scan(scratch.ids_, scratch.ranks_);
  else
    merge_by_heap(scratch);
  ids.insert(ids.end(), scratch.ids_.begin(), scratch.ids_.end());
}

void Bpe::start(std::string_view piece, std::vector<int32_t>& ids) const {
  ids.clear();
  bool previous_unknown = false;
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    const int32_t id = byte_ids_[byte];
    if (id >= 0) {
      ids.push_back(id);
    } else if (unknown_id_ < 0) {
      throw Error(ErrorKind::kFormat, {.where = where_ + ".vocab",
                                       .expected = "a token for every byte that occurs in text",
                                       .found = fmt::format("none for byte 0x{:02X}", byte),
                                       .mend = "the vocabulary is not that of byte-level BPE"});
    } else if (!fuse_unknown_ || !previous_unknown) {
      ids.push_back(unknown_id_);
    }
    previous_unknown = id < 0;
  }
}

void Bpe::merge_by_scan(std::vector<int32_t>& ids, std::vector<uint32_t>& ranks) const {
  // ranks[i] is that of the pair (i, i + 1).
  ranks.clear();
  for (size_t i = 0; i + 1 < ids.size(); ++i) ranks.push_back(rank(ids[i], ids[i + 1]));
  while (!ranks.empty()) {
    const auto best = std::min_element(ranks.begin(), ranks.end());
    if (*best == kNoRank) return;
    const auto i = static_cast<size_t>(best - ranks.begin());
    ids[i] = find(ids[i], ids[i + 1])->id;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(i) + 1);
    ranks.erase(best);
    if (i > 0) ranks[i - 1] = rank(ids[i - 1], ids[i]);
    if (i < ranks.size()) ranks[i] = rank(ids[i], ids[i + 1]);
  }
}

void Bpe::merge_by_heap(Scratch& scratch) const {
  std::vector<int32_t>& ids = scratch.ids_;
  if (ids.size() > INT32_MAX)
    throw Error(ErrorKind::kLimit, {.where = "text to tokenise",
                                    .expected = "a piece of at most 2^31 bytes",
                                    .found = fmt::format("{}", ids.size()),
                                    .mend = {}});
  const auto size = static_cast<int32_t>(ids.size());
  // A doubly linked list of the tokens left; a joined token stands at its leftmost byte. heap_ holds
  // (rank, position) and is out of date where ranks_ says otherwise.
  std::vector<int32_t>& previous = scratch.previous_;
  std::vector<int32_t>& next = scratch.next_;
  std::vector<uint32_t>& ranks = scratch.ranks_;
  std::vector<uint64_t>& heap = scratch.heap_;
  previous.resize(ids.size());
  next.resize(ids.size());
  ranks.assign(ids.size(), kNoRank);
  heap.clear();
  const auto update = [&](int32_t i) {
    ranks[i] = next[i] < size ? rank(ids[i], ids[next[i]]) : kNoRank;
    if (ranks[i] == kNoRank) return false;
    heap.push_back(static_cast<uint64_t>(ranks[i]) << 32 | static_cast<uint32_t>(i));
    return true;
  };
  for (int32_t i = 0; i < size; ++i) {
    previous[i] = i - 1;
    next[i] = i + 1;
  }
  for (int32_t i = 0; i < size; ++i) update(i);
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const auto i = static_cast<int32_t>(heap.back() & UINT32_MAX);
    const auto top = static_cast<uint32_t>(heap.back() >> 32);
    heap.pop_back();
    if (ranks[i] != top) continue;
    const int32_t gone = next[i];
    ids[i] = find(ids[i], ids[gone])->id;
    ids[gone] = -1;
    ranks[gone] = kNoRank;
    next[i] = next[gone];
    if (next[i] < size) previous[next[i]] = i;
    if (update(i)) std::push_heap(heap.begin(), heap.end(), std::greater<>());
    if (previous[i] >= 0 && update(previous[i])) std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
  std::erase(ids, -1);
}

}  // namespace sinter::text
