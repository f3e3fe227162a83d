// Text to token ids and back, as a checkpoint's tokenizer.json says: byte-level BPE with the parts that
// GLM, DeepSeek, Qwen and GPT-2 style files use. A part that is not implemented is an error that names it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/normalizer.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"

namespace sinter::text {

// Immutable after loading; every const member is safe from many threads.
class Tokenizer {
 public:
  // Reads tokenizer.json and, where there is one, tokenizer_config.json. Throws Error.
  static Tokenizer load(const std::filesystem::path& folder);
  // The same from memory; `where` names the text in errors. An empty `config` is none.
  static Tokenizer parse(std::string_view json, const std::string& where, std::string_view config = {});

  // The ids of `text`, nothing added. Bytes that are not UTF-8 count as U+FFFD, one for each maximal
  // invalid part. Without `allow_special`, special tokens in the text are text: for what users write.
  std::vector<int32_t> encode(std::string_view text, bool allow_special = true) const;
  // The same between what the checkpoint puts around a plain prompt, as a token for its beginning. A
  // rendered chat template has that already.
  std::vector<int32_t> encode_prompt(std::string_view text, bool allow_special = true) const;

  // Invalid UTF-8 in the joint bytes becomes U+FFFD. Ids without a token (the padding of an embedding)
  // give nothing; negative ids throw Error(kLimit).
  std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;

  // The bytes that the token adds to the text, not always whole characters. Empty for ids without a token.
  std::string_view token_bytes(int32_t id) const;
  std::optional<int32_t> token_to_id(std::string_view token) const;  // in the file's spelling
  bool is_special(int32_t id) const;
  // The largest id plus one. An embedding may have more rows, never fewer.
  int32_t vocab_size() const { return static_cast<int32_t>(tokens_.size()); }

  // tokenizer_config.json's bos_token, eos_token, pad_token, ... : what chat templates refer to.
  const std::map<std::string, std::string, std::less<>>& named_tokens() const { return named_tokens_; }

 private:
  struct Token {
    uint32_t begin = 0;  // in bytes_
    uint32_t size = 0;
    bool exists = false;
    bool special = false;
  };

  Tokenizer(const TokenizerJson& file, const std::string& where, std::string_view config);

  void add_vocab(const TokenizerJson& file);
  std::vector<AddedToken> read_added_tokens(const TokenizerJson& file, const std::string& where,
                                            std::string_view config);
  void read_config(const Json& config, const std::string& where, std::vector<AddedToken>& added);
  void add_token(const AddedToken& token, const std::string& where);
  void set_token(int32_t id, std::string_view text, std::string_view decoded, bool special);
  void check_post_processor(const std::string& where) const;
  void append(std::string_view text, bool allow_special, std::vector<int32_t>& ids) const;

  std::string bytes_;
  std::vector<Token> tokens_;  // by id
  std::unordered_map<std::string, int32_t, BytesHash, std::equal_to<>> ids_;
  std::map<std::string, std::string, std::less<>> named_tokens_;

  Normalizer normalizer_;
  std::vector<AddedTokenMatcher> matchers_;  // before and after normalisation
  PreTokenizer pre_tokenizer_;
  Bpe bpe_;
  PostProcessor post_processor_;
};

}  // namespace sinter::text
