// What a config says about quantisation, for folders without weights. With weights the tensors decide, for
// the lists of excluded modules are often wrong.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "ops/weights.h"

namespace sinter {
class JsonObject;
}

namespace sinter::workbench {

// Names of modules: a plain name covers what lies under it, `*` and `?` match as in a shell, "re:" begins
// a regular expression.
class ModulePatterns {
 public:
  ModulePatterns() = default;
  // Throws Error(kFormat) for a regular expression that does not compile.
  ModulePatterns(const std::vector<std::string>& patterns, const std::string& where);
  bool matches(const std::string& module) const;
  bool is_empty() const { return names_.empty() && globs_.empty() && regexes_.empty(); }

 private:
  struct Regex;
  std::unordered_set<std::string> names_;
  std::vector<std::string> globs_;
  std::vector<std::shared_ptr<const Regex>> regexes_;
};

class QuantizationConfig {
 public:
  // An unknown method is Error(kUnsupported).
  static QuantizationConfig read(const checkpoint::Checkpoint& checkpoint);
  // For folders with weights, whose tensors tell the rest: throws Error(kUnsupported) for a method that
  // stores other tensors (gptq, awq, ...).
  static void check_method(const checkpoint::Checkpoint& checkpoint);

  ops::WeightFormat format_of(const std::string& module) const;
  const std::string& method() const { return method_; }  // "modelopt NVFP4", "none"

 private:
  struct Rule {
    ModulePatterns targets;  // empty: every linear
    ops::WeightFormat format;
  };
  std::string method_ = "none";
  ops::WeightFormat otherwise_ = ops::WeightFormat::kBF16;
  std::vector<Rule> rules_;  // the first that matches
  ModulePatterns ignored_;

  void read_modelopt(const JsonObject& quantization);
  void read_groups(const JsonObject& quantization);
  void read_fp8(const JsonObject& quantization);
};

}  // namespace sinter::workbench
