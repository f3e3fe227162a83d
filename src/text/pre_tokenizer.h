// Cuts normalised text into the pieces that BPE merges within. Every stage cuts each piece of the stage
// before it on its own, so a pattern never looks over the edge of a piece.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "text/regex.h"

namespace sinter::text {

// What becomes of a match, as in "the-final--countdown" split at "-".
enum class SplitBehavior {
  kRemoved,             // the final countdown
  kIsolated,            // the - final - - countdown
  kMergedWithPrevious,  // the- final- - countdown
  kMergedWithNext,      // the -final - -countdown
  kContiguous,          // the - final -- countdown
};

// Pieces of `text`, in order, none empty.
struct Pieces {
  std::string_view text;
  std::vector<Span> spans;
  std::string storage;  // of `text`, when a stage changed it
};

class PreTokenizer {
 public:
  // `json` has to end in ByteLevel: the model's alphabet is bytes. Throws Error(kUnsupported) naming any
  // other part.
  PreTokenizer(const Json& json, const std::string& where);

  // Replaces what `pieces` held. `text` is valid UTF-8 and has to outlive them.
  void split(std::string_view text, Pieces& pieces) const;

 private:
  struct Stage {
    std::optional<Regex> pattern;  // none: no cut
    SplitBehavior behavior = SplitBehavior::kIsolated;
    bool invert = false;            // what is between matches counts as the match
    bool add_prefix_space = false;  // before the cut, to pieces without one
  };

  void add(const Json& json, const std::string& where);

  std::vector<Stage> stages_;
  bool has_byte_level_ = false;
};

}  // namespace sinter::text
