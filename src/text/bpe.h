// Byte-level byte pair encoding: starts from the bytes of a piece and joins, again and again, the
// adjacent pair of tokens that comes first in the list of merges (the leftmost of equals).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json_fwd.h"
#include "text/tokenizer_json.h"

namespace sinter::text {

// Lets maps with string keys be asked for a string_view.
struct BytesHash {
  using is_transparent = void;
  size_t operator()(std::string_view bytes) const { return std::hash<std::string_view>()(bytes); }
};

class Bpe {
 public:
  // `model` is the file's "model" object. Throws Error(kFormat) for ids or tokens there twice and merges
  // of unknown tokens, kUnsupported for other models and options, each by name.
  Bpe(const TokenizerJson& file, const Json& model, const std::string& where);

  // Pieces met before and the room for merging; one per call of encode, so that threads share nothing.
  class Scratch {
   public:
    explicit Scratch(size_t text_bytes);

   private:
    friend class Bpe;
    // A short piece and where its ids stand in the output.
    struct Seen {
      static constexpr size_t kMaxBytes = 23;
      char bytes[kMaxBytes];
      uint8_t size = 0;  // 0: free
      uint32_t num_ids;
      uint64_t first_id;
    };
    std::vector<Seen> seen_;  // a power of two
    std::vector<int32_t> ids_;
    std::vector<int32_t> previous_;
    std::vector<int32_t> next_;
    std::vector<uint32_t> ranks_;
    std::vector<uint64_t> heap_;
  };

  // Appends the tokens of one piece. `ids` has to be the same vector for the life of `scratch` and only
  // grow. O(n log n) in the piece's bytes.
  void encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const;

 private:
  static constexpr uint32_t kNoRank = UINT32_MAX;
  struct Merge {
    uint64_t pair = UINT64_MAX;  // left id, right id; all ones: free
    uint32_t rank = kNoRank;
    int32_t id = 0;
  };

  void read_options(const Json& model, const std::string& where);
  void add_merges(const TokenizerJson& file, const std::unordered_map<std::string_view, int32_t>& ids,
                  const std::string& where);
  const Merge* find(int32_t left, int32_t right) const;
  uint32_t rank(int32_t left, int32_t right) const;
  void merge(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const;
  void start(std::string_view piece, std::vector<int32_t>& ids) const;
  void merge_by_scan(std::vector<int32_t>& ids, std::vector<uint32_t>& ranks) const;
  void merge_by_heap(Scratch& scratch) const;

  std::array<int32_t, 256> byte_ids_;  // -1: no such token
  std::vector<Merge> merges_;          // open addressing, a power of two
  std::string unknown_token_;
  int32_t unknown_id_ = -1;
  bool fuse_unknown_ = false;
  bool ignore_merges_ = false;
  // With ignore_merges: whole pieces by their bytes.
  std::unordered_map<std::string, int32_t, BytesHash, std::equal_to<>> pieces_;
  std::string where_;
};

}  // namespace sinter::text
