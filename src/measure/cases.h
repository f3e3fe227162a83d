// Cases: the shapes that contract test, benchmark and tuner share, one file per origin.
//
//   {"source": "GLM-5, config.json", "cases": [
//     {"op": "linear", "T": [1, 16], "N": 6144, "K": 2048, "format": ["bf16", "nvfp4"], "y": "f32"}]}
//
// Keys are the fields of the op's Problem; those with a default may be left out. A list makes a case of each
// of its values, several lists of every combination. "test" holds what the contract test replaces where the
// real size would take long. The fields of Scenario may stand beside them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op.h"

namespace sinter::measure {

enum class Routing : uint8_t {
  kEven,        // every token draws its experts evenly
  kOneExpert,   // all tokens take the same ones: the others are empty
  kEmptySlots,  // half of the ids are -1, all of the first token's
};

// What the numbers of a problem leave open.
struct Scenario {
  Routing routing = Routing::kEven;
  // Tokens in the cache of each sequence after the step, B of them; empty: all max_context. The step's T
  // tokens are the last ones of their sequences, shared out evenly, and at least one a sequence.
  std::vector<int64_t> lengths;
  bool strided = false;  // tensors whose rows may be strided are
};

struct Case {
  std::string name;  // "glm5_layer: linear T=1 N=6144 ..."
  ops::Problem problem;
  Scenario scenario;
};

enum class CaseUse : uint8_t { kBenchmark, kTest };

// Throws Error(kFormat) naming file and key.
std::vector<Case> parse_cases(std::string_view text, const std::string& where, CaseUse use);
// All *.json of a folder, by name.
std::vector<Case> load_cases(const std::filesystem::path& folder, CaseUse use);

}  // namespace sinter::measure
