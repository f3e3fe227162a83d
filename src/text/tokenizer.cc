#include "text/tokenizer.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/file_map.h"
#include "base/json.h"
#include "text/byte_level.h"
#include "text/pattern_json.h"
#include "text/utf8.h"

namespace sinter::text {
namespace {

constexpr std::string_view kConfigName = "tokenizer_config.json";
constexpr size_t kMaxConfigBytes = size_t{16} << 20;

const Json& part(const Json& file, const char* key) {
  static const Json kNull;
  const auto it = file.find(key);
  return it == file.end() ? kNull : *it;
}

void check_decoder(const Json& json, const std::string& where) {
  const auto refuse = [&](const std::string& found) {
    throw Error(ErrorKind::kUnsupported, {.where = where,
                                          .expected = "ByteLevel",
                                          .found = found,
                                          .mend = "only byte-level BPE is implemented"});
  };
  if (json.is_null()) refuse("none");
  const JsonObject object(json, where);
  const std::string type = object.get_string("type");
  if (type == "ByteLevel") return;
  if (type != "Sequence") refuse(fmt::format("'{}'", type));
  bool has_byte_level = false;
  for (const Json& item : list_at(object, "decoders")) {
    const std::string name = JsonObject(item, where).get_string("type");
    if (name != "ByteLevel" && name != "Fuse") refuse(fmt::format("'{}'", name));  // Fuse joins, as we do
    has_byte_level |= name == "ByteLevel";
  }
  if (!has_byte_level) refuse("none in the sequence");
}

AddedToken read_added_token(const JsonObject& object, int32_t id) {
  AddedToken token;
  token.content = object.get_string("content");
  token.id = id;
  token.single_word = object.get_bool_or("single_word", false);
  token.lstrip = object.get_bool_or("lstrip", false);
  token.rstrip = object.get_bool_or("rstrip", false);
  token.special = object.get_bool_or("special", false);
  token.normalized = object.get_bool_or("normalized", !token.special);
  return token;
}

void check_id(int32_t id) {
  if (id < 0)
    throw Error(ErrorKind::kLimit, {.where = "token to decode",
                                    .expected = "an id of 0 or more",
                                    .found = fmt::format("{}", id),
                                    .mend = {}});
}

}  // namespace

Tokenizer Tokenizer::load(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "tokenizer.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored) && std::filesystem::exists(folder / "tiktoken.model", ignored))
    throw Error(ErrorKind::kUnsupported, {.where = folder.string(),
                                          .expected = "a tokenizer.json",
                                          .found = "only tiktoken.model",
                                          .mend = "convert it with the transformers package"});
  const FileMap file(path);
  std::string config;
  if (std::filesystem::exists(folder / kConfigName, ignored))
    config = read_text_file(folder / kConfigName, kMaxConfigBytes);
  const auto bytes = file.bytes();
  return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string(), config);
}

Tokenizer Tokenizer::parse(std::string_view json, const std::string& where, std::string_view config) {
  return Tokenizer(read_tokenizer_json(json, where), where, config);
}

Tokenizer::Tokenizer(const TokenizerJson& file, const std::string& where, std::string_view config)
    : normalizer_(part(file.rest, "normalizer"), where + ": normalizer"),
      pre_tokenizer_(part(file.rest, "pre_tokenizer"), where + ": pre_tokenizer"),
      bpe_(file, part(file.rest, "model"), where + ": model"),
      post_processor_(read_post_processor(part(file.rest, "post_processor"), where + ": post_processor")) {
  check_decoder(part(file.rest, "decoder"), where + ": decoder");
  add_vocab(file);
  std::vector<AddedToken> before;
  std::vector<AddedToken> after;
  for (AddedToken& token : read_added_tokens(file, where, config)) {
    if (token.normalized) token.content = normalizer_.apply(std::move(token.content));
    (token.normalized ? after : before).push_back(std::move(token));
  }
  matchers_.emplace_back(std::move(before), where);
  matchers_.emplace_back(std::move(after), where);
  check_post_processor(where);
}

void Tokenizer::add_vocab(const TokenizerJson& file) {
  int32_t max_id = -1;
  for (const TokenizerJson::VocabEntry& entry : file.vocab) max_id = std::max(max_id, entry.id);
  tokens_.resize(static_cast<size_t>(max_id) + 1);
  ids_.reserve(file.vocab.size());
  for (const TokenizerJson::VocabEntry& entry : file.vocab)
    set_token(entry.id, file.at(entry.token), file.at(entry.token), false);
}

void Tokenizer::set_token(int32_t id, std::string_view text, std::string_view decoded, bool special) {
  if (static_cast<size_t>(id) >= tokens_.size()) tokens_.resize(static_cast<size_t>(id) + 1);
  const std::optional<std::string> bytes = byte_level_bytes(decoded);
  const std::string_view added = bytes ? std::string_view(*bytes) : decoded;
  tokens_[id] = {static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(added.size()), true, special};
  bytes_ += added;
  ids_.emplace(text, id);
}

std::vector<AddedToken> Tokenizer::read_added_tokens(const TokenizerJson& file, const std::string& where,
                                                     std::string_view config) {
  std::vector<AddedToken> tokens;
  const Json& list = part(file.rest, "added_tokens");
  if (!list.is_null()) {
    const JsonObject object(file.rest, where);
    for (const Json& item : list_at(object, "added_tokens")) {
      const JsonObject entry(item, object.where("added_tokens"));
      tokens.push_back(read_added_token(entry, static_cast<int32_t>(entry.get_int("id", 0, kMaxTokenId))));
    }
  }
  std::erase_if(tokens, [](const AddedToken& token) { return token.content.empty(); });
  for (const AddedToken& token : tokens) add_token(token, where);
  if (!config.empty()) {
    const std::string config_where = (std::filesystem::path(where).parent_path() / kConfigName).string();
    read_config(parse_json(config, config_where), config_where, tokens);
  }
  return tokens;
}

void Tokenizer::add_token(const AddedToken& token, const std::string& where) {
  const auto known = ids_.find(token.content);
  const bool exists = static_cast<size_t>(token.id) < tokens_.size() && tokens_[token.id].exists;
  if (known == ids_.end() ? exists : known->second != token.id)
    throw Error(ErrorKind::kFormat,
                {.where = fmt::format("{}: added token '{}'", where, token.content),
                 .expected = known == ids_.end() ? "an id of its own" : fmt::format("id {}", known->second),
                 .found = fmt::format("id {}", token.id),
                 .mend = {}});
  std::string decoded = token.content;
  if (token.normalized) decoded = normalizer_.apply(std::move(decoded));
  set_token(token.id, token.content, decoded, token.special);
}

void Tokenizer::read_config(const Json& json, const std::string& where, std::vector<AddedToken>& added) {
  const JsonObject config(json, where);
  for (const auto& [key, value] : json.items()) {
    if (!key.ends_with("_token")) continue;
    if (value.is_string())
      named_tokens_[key] = value.get<std::string>();
    else if (value.is_object())
      named_tokens_[key] = JsonObject(value, config.where(key)).get_string("content");
  }
  if (const std::optional<JsonObject> tokens = config.find_object("added_tokens_decoder")) {
    // Mostly the added tokens of tokenizer.json again.
    for (const auto& [key, value] : tokens->json().items()) {
      int32_t id = -1;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      if (error != std::errc() || end != key.data() + key.size() || id < 0 || id > kMaxTokenId)
        throw Error(ErrorKind::kFormat,
                    {.where = tokens->where(),
                     .expected = fmt::format("token ids from 0 to {} as keys", kMaxTokenId),
                     .found = fmt::format("'{}'", key),
                     .mend = {}});
      AddedToken token = read_added_token(JsonObject(value, tokens->where(key)), id);
      const auto same = [&](const AddedToken& other) { return other.content == token.content; };
      const auto known = std::find_if(added.begin(), added.end(), same);
      if (token.content.empty() || (known != added.end() && known->id == id)) continue;
      add_token(token, where);
      added.push_back(std::move(token));
    }
  }
  // Either key replaces what tokenizer.json's post-processor adds.
  if (!config.has("add_bos_token") && !config.has("add_eos_token")) return;
  post_processor_ = {};
  const auto add = [&](const char* key, const char* name, std::vector<int32_t>& side) {
    if (!config.get_bool_or(key, false)) return;
    const auto token = named_tokens_.find(name);
    if (token == named_tokens_.end()) return;
    const std::optional<int32_t> id = token_to_id(token->second);
    if (!id)
      throw Error(ErrorKind::kFormat, {.where = config.where(name),
                                       .expected = "a token of tokenizer.json",
                                       .found = fmt::format("'{}'", token->second),
                                       .mend = {}});
    side.push_back(*id);
  };
  add("add_bos_token", "bos_token", post_processor_.prefix);
  add("add_eos_token", "eos_token", post_processor_.suffix);
}

void Tokenizer::check_post_processor(const std::string& where) const {
  for (const std::vector<int32_t>* side : {&post_processor_.prefix, &post_processor_.suffix})
    for (const int32_t id : *side)
      if (id >= vocab_size() || !tokens_[id].exists)
        throw Error(ErrorKind::kFormat, {.where = where + ": post_processor",
                                         .expected = "ids of tokens",
                                         .found = fmt::format("{}", id),
                                         .mend = {}});
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool allow_special) const {
  std::vector<int32_t> ids;
  append(text, allow_special, ids);
  return ids;
}

std::vector<int32_t> Tokenizer::encode_prompt(std::string_view text, bool allow_special) const {
  std::vector<int32_t> ids = post_processor_.prefix;
  append(text, allow_special, ids);
  ids.insert(ids.end(), post_processor_.suffix.begin(), post_processor_.suffix.end());
  return ids;
}

void Tokenizer::append(std::string_view text, bool allow_special, std::vector<int32_t>& ids) const {
  std::string valid;
  if (!is_utf8(text)) {
    valid = replace_invalid_utf8(text);
    text = valid;
  }
  ids.reserve(ids.size() + text.size() / 3);
  Bpe::Scratch scratch(text.size());
  Pieces pieces;
  const auto on_token = [&](int32_t id) { ids.push_back(id); };
  const auto merge = [&](std::string_view normalized) {
    pre_tokenizer_.split(normalized, pieces);
    for (const Span& span : pieces.spans)
      bpe_.encode(pieces.text.substr(span.begin, span.end - span.begin), scratch, ids);
  };
  const auto on_text = [&](std::string_view part_of_text) {
    if (normalizer_.is_identity())
      matchers_[1].split(part_of_text, allow_special, merge, on_token);
    else
      matchers_[1].split(normalizer_.apply(std::string(part_of_text)), allow_special, merge, on_token);
  };
  matchers_[0].split(text, allow_special, on_text, on_token);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string bytes;
  for (const int32_t id : ids) {
    check_id(id);
    if (!skip_special || !is_special(id)) bytes += token_bytes(id);
  }
  return is_utf8(bytes) ? bytes : replace_invalid_utf8(bytes);
}

std::string_view Tokenizer::token_bytes(int32_t id) const {
  if (id < 0 || id >= vocab_size()) return {};
  return std::string_view(bytes_).substr(tokens_[id].begin, tokens_[id].size);
}

std::optional<int32_t> Tokenizer::token_to_id(std::string_view token) const {
  const auto it = ids_.find(token);
  return it == ids_.end() ? std::nullopt : std::optional<int32_t>(it->second);
}

bool Tokenizer::is_special(int32_t id) const { return id >= 0 && id < vocab_size() && tokens_[id].special; }

}  // namespace sinter::text
