// Reads the text of a tokenizer.json. Its vocabulary and merges, hundreds of thousands of entries, go
// into flat tables without a JSON tree; everything else into a tree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace sinter::text {

struct TokenizerJson {
  struct Text {  // in `arena`
    uint32_t begin;
    uint32_t size;
  };
  struct VocabEntry {
    Text token;
    int32_t id;
  };
  struct Merge {
    Text left;
    Text right;
  };

  std::string_view at(Text text) const { return std::string_view(arena).substr(text.begin, text.size); }

  std::string arena;
  std::vector<VocabEntry> vocab;  // as written: ids may repeat
  std::vector<Merge> merges;
  bool has_vocab = false;  // a map at model.vocab, not a list as of other models
  bool has_merges = false;
  Json rest;  // the whole file but model.vocab and model.merges
};

// Ids above this are refused: tables have an entry for each id.
inline constexpr int32_t kMaxTokenId = (1 << 22) - 1;

// Throws Error(kFormat) for broken JSON and for a vocabulary or merges of another form, kLimit for
// nesting and sizes.
TokenizerJson read_tokenizer_json(std::string_view json, const std::string& where);

}  // namespace sinter::text
