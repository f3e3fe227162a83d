#include "text/tokenizer_json.h"

#include <utility>

#include "base/error.h"

namespace sinter::text {
namespace {

constexpr size_t kMaxFileBytes = size_t{512} << 20;
constexpr size_t kMaxDepth = 64;
// Json looks keys up one by one; outside of the vocabulary objects are small.
constexpr size_t kMaxKeys = 4096;

// Receives the events of nlohmann's parser, which itself does not recurse.
class Reader {
 public:
  Reader(TokenizerJson& out, const std::string& where) : out_(out), where_(where) {}

  // Events.
  bool null() { return scalar(Json(nullptr)); }
  bool boolean(bool value) { return scalar(Json(value)); }
  bool number_integer(Json::number_integer_t value) { return integer(value, Json(value)); }
  bool number_unsigned(Json::number_unsigned_t value) {
    return integer(value > static_cast<uint64_t>(INT64_MAX) ? INT64_MAX : static_cast<int64_t>(value),
                   Json(value));
  }
  bool number_float(Json::number_float_t value, const std::string&) { return scalar(Json(value)); }
  bool string(std::string& value) {
    switch (place_) {
      case Place::kTree: return add(Json(std::move(value)), false);
      case Place::kVocab: fail_vocab("a string");
      case Place::kMerges: merge_line(value); return true;
      case Place::kMergePair:
        if (pair_size_ == 2) fail_merge("a longer list");
        pair_[pair_size_++] = store(value);
        return true;
    }
    return true;
  }
  bool binary(Json::binary_t&) { return true; }  // not in JSON

  bool start_object(size_t) {
    if (place_ == Place::kVocab) fail_vocab("an object");
    if (place_ != Place::kTree) fail_merge("an object");
    if (is_model_key("vocab")) return enter(Place::kVocab, out_.has_vocab, "vocab");
    return add(Json::object(), true);
  }
  bool start_array(size_t) {
    if (place_ == Place::kVocab) fail_vocab("a list");
    if (place_ == Place::kMergePair) fail_merge("a list in a list");
    if (place_ == Place::kMerges) {
      place_ = Place::kMergePair;
      pair_size_ = 0;
      return true;
    }
    if (is_model_key("merges")) return enter(Place::kMerges, out_.has_merges, "merges");
    return add(Json::array(), true);
  }
  bool key(std::string& value) {
    if (place_ == Place::kVocab) {
      token_ = store(value);
      return true;
    }
    key_ = std::move(value);
    return true;
  }
  bool end_object() { return end(); }
  bool end_array() {
    if (place_ == Place::kMergePair) {
      if (pair_size_ != 2) fail_merge(fmt::format("a list of {}", pair_size_));
      out_.merges.push_back({pair_[0], pair_[1]});
      place_ = Place::kMerges;
      return true;
    }
    return end();
  }
  bool parse_error(size_t position, const std::string&, const Json::exception&) {
    throw Error(ErrorKind::kFormat, {.where = where_,
                                     .expected = "JSON",
                                     .found = fmt::format("a syntax error at byte {}", position),
                                     .mend = {}});
  }

 private:
  enum class Place { kTree, kVocab, kMerges, kMergePair };

  [[noreturn]] void fail_vocab(std::string_view found) const {
    throw Error(ErrorKind::kFormat,
                {.where = where_ + ": model.vocab",
                 .expected = fmt::format("a map of tokens to ids from 0 to {}", kMaxTokenId),
                 .found = fmt::format("{} for '{}'", found, out_.at(token_)),
                 .mend = {}});
  }
  [[noreturn]] void fail_merge(std::string_view found) const {
    throw Error(ErrorKind::kFormat, {.where = fmt::format("{}: merge {}", where_, out_.merges.size()),
                                     .expected = "two tokens, as \"a b\" or [\"a\", \"b\"]",
                                     .found = std::string(found),
                                     .mend = {}});
  }

  bool is_model_key(std::string_view name) const {
    return stack_.size() == 2 && key_ == name && stack_[1]->is_object() && in_model_;
  }

  bool enter(Place place, bool& seen, std::string_view name) {
    if (seen)
      throw Error(ErrorKind::kFormat, {.where = where_ + ": model",
                                       .expected = fmt::format("'{}' once", name),
                                       .found = "it twice",
                                       .mend = {}});
    seen = true;
    place_ = place;
    return true;
  }

  bool end() {
    if (place_ != Place::kTree)
      place_ = Place::kTree;
    else
      stack_.pop_back();
    return true;
  }

  bool integer(int64_t value, Json json) {
    if (place_ != Place::kVocab) return scalar(std::move(json));
    if (value < 0 || value > kMaxTokenId) fail_vocab(fmt::format("{}", value));
    out_.vocab.push_back({token_, static_cast<int32_t>(value)});
    return true;
  }

  bool scalar(Json value) {
    if (place_ == Place::kVocab) fail_vocab(value.dump());
    if (place_ != Place::kTree) fail_merge(value.dump());
    return add(std::move(value), false);
  }

  // Containers on the stack stay where they are: only the innermost one grows.
  bool add(Json value, bool is_container) {
    if (is_container && stack_.size() == kMaxDepth)
      throw Error(ErrorKind::kLimit, {.where = where_,
                                      .expected = fmt::format("JSON nested at most {} deep", kMaxDepth),
                                      .found = "deeper nesting",
                                      .mend = {}});
    Json* added = nullptr;
    if (stack_.empty()) {
      out_.rest = std::move(value);
      added = &out_.rest;
    } else if (stack_.back()->is_array()) {
      stack_.back()->push_back(std::move(value));
      added = &stack_.back()->back();
    } else {
      if (stack_.back()->size() == kMaxKeys)
        throw Error(ErrorKind::kLimit, {.where = where_,
                                        .expected = fmt::format("at most {} keys in an object", kMaxKeys),
                                        .found = "more",
                                        .mend = {}});
      if (stack_.size() == 1) in_model_ = key_ == "model";
      added = &(*stack_.back())[key_];
      *added = std::move(value);
    }
    if (is_container) stack_.push_back(added);
    return true;
  }

  TokenizerJson::Text store(std::string_view text) {
    const TokenizerJson::Text stored{static_cast<uint32_t>(out_.arena.size()),
                                     static_cast<uint32_t>(text.size())};
    out_.arena += text;
    return stored;
  }

  void merge_line(std::string_view line) {
    if (line.starts_with("#version")) return;
    const size_t space = line.find(' ');
    if (space == line.npos || line.find(' ', space + 1) != line.npos) fail_merge(fmt::format("'{}'", line));
    const TokenizerJson::Text left = store(line.substr(0, space));
    out_.merges.push_back({left, store(line.substr(space + 1))});
  }

  TokenizerJson& out_;
  const std::string& where_;
  Place place_ = Place::kTree;
  std::vector<Json*> stack_;
  std::string key_;
  bool in_model_ = false;  // the container at depth 1 is the root's "model"
  TokenizerJson::Text token_{};
  TokenizerJson::Text pair_[2]{};
  int pair_size_ = 0;
};

}  // namespace

TokenizerJson read_tokenizer_json(std::string_view json, const std::string& where) {
  if (json.size() > kMaxFileBytes)
    throw Error(ErrorKind::kLimit, {.where = where,
                                    .expected = fmt::format("at most {} bytes", kMaxFileBytes),
                                    .found = fmt::format("{} bytes", json.size()),
                                    .mend = {}});
  TokenizerJson out;
  out.arena.reserve(json.size() / 2);
  Reader reader(out, where);
  Json::sax_parse(json.begin(), json.end(), &reader);
  if (!out.rest.is_object())
    throw Error(ErrorKind::kFormat,
                {.where = where, .expected = "a JSON object", .found = out.rest.type_name(), .mend = {}});
  return out;
}

}  // namespace sinter::text
