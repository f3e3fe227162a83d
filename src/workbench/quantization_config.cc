#include "workbench/quantization_config.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fnmatch.h>
#include <pcre2.h>

#include <algorithm>
#include <new>
#include <optional>

#include "base/error.h"
#include "base/json.h"

namespace sinter::workbench {
namespace {

using ops::WeightFormat;

// ModelOpt's names; weight-only and weight-and-activation variants store the same weights.
std::optional<WeightFormat> format_of_algo(std::string_view algo) {
  if (algo == "NVFP4" || algo == "W4A16_NVFP4" || algo == "NVFP4_AWQ") return WeightFormat::kNvfp4;
  if (algo == "FP8") return WeightFormat::kFp8Tensor;
  if (algo == "FP8_PB_WO" || algo == "FP8_PB_REAL") return WeightFormat::kFp8Block;
  if (algo == "MXFP4" || algo == "W4A8_MXFP4_FP8") return WeightFormat::kMxfp4;
  return std::nullopt;
}

[[noreturn]] void fail_unsupported(std::string where, std::string found) {
  throw Error(ErrorKind::kUnsupported,
              {.where = std::move(where),
               .expected = "NVFP4, MXFP4 or FP8 by ModelOpt, compressed-tensors or the fp8 method",
               .found = std::move(found),
               .mend = "--store PART=FORMAT,... tells the formats instead"});
}

// `weights` of a compressed-tensors or ModelOpt config group.
WeightFormat format_of_group(const JsonObject& weights) {
  const int64_t num_bits = weights.get_int_or("num_bits", 1, 64, 0);
  const int64_t group_size = weights.get_int_or("group_size", -1, 1 << 20, 0);
  const std::string type = weights.get_string_or("type", "float");
  const std::string strategy = weights.get_string_or("strategy", "");
  if (type == "float" && num_bits == 4 && group_size == 16) return WeightFormat::kNvfp4;
  if (type == "float" && num_bits == 4 && group_size == 32) return WeightFormat::kMxfp4;
  if (type == "float" && num_bits == 8 && strategy == "block") return WeightFormat::kFp8Block;
  if (type == "float" && num_bits == 8 && (strategy.empty() || strategy == "tensor"))
    return WeightFormat::kFp8Tensor;
  fail_unsupported(weights.where(), fmt::format("{} bits of type {} in groups of {}, strategy '{}'", num_bits,
                                                type, group_size, strategy));
}

WeightFormat format_of_dtype(const JsonObject& config) {
  const std::string dtype = config.get_string_or("dtype", config.get_string_or("torch_dtype", "bfloat16"));
  if (dtype == "float32") return WeightFormat::kF32;
  if (dtype == "float16") return WeightFormat::kF16;
  return WeightFormat::kBF16;
}

}  // namespace

struct ModulePatterns::Regex {
  struct Free {
    void operator()(pcre2_code* owned) const { pcre2_code_free(owned); }
    void operator()(pcre2_match_context* owned) const { pcre2_match_context_free(owned); }
    void operator()(pcre2_match_data* owned) const { pcre2_match_data_free(owned); }
  };
  std::unique_ptr<pcre2_code, Free> code;
  std::unique_ptr<pcre2_match_context, Free> context;
  std::unique_ptr<pcre2_match_data, Free> data;

  Regex(const std::string& pattern, const std::string& where) {
    int error = 0;
    size_t offset = 0;
    code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_ANCHORED,
                             &error, &offset, nullptr));
    if (!code)
      throw Error(ErrorKind::kFormat, {.where = where,
                                       .expected = "a regular expression",
                                       .found = fmt::format("'{}', wrong at offset {}", pattern, offset),
                                       .mend = ""});
    context.reset(pcre2_match_context_create(nullptr));
    data.reset(pcre2_match_data_create_from_pattern(code.get(), nullptr));
    if (!context || !data) throw std::bad_alloc();
    // A pattern comes from a file: it may fail to match, not take for ever.
    pcre2_set_match_limit(context.get(), 10000);
  }

  bool matches(const std::string& module) const {
    return pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(module.data()), module.size(), 0, 0,
                       data.get(), context.get()) >= 0;
  }
};

ModulePatterns::ModulePatterns(const std::vector<std::string>& patterns, const std::string& where) {
  for (const std::string& pattern : patterns) {
    if (pattern.starts_with("re:")) {
      regexes_.push_back(std::make_shared<const Regex>(pattern.substr(3), where));
    } else if (pattern.find_first_of("*?[") != std::string::npos) {
      globs_.push_back(pattern);
    } else {
      names_.insert(pattern);
    }
  }
}

bool ModulePatterns::matches(const std::string& module) const {
  if (!names_.empty()) {
    for (size_t end = module.find('.');; end = module.find('.', end + 1)) {
      if (names_.contains(module.substr(0, end))) return true;
      if (end == std::string::npos) break;
    }
  }
  return std::any_of(
             globs_.begin(), globs_.end(),
             [&](const std::string& glob) { return fnmatch(glob.c_str(), module.c_str(), 0) == 0; }) ||
         std::any_of(regexes_.begin(), regexes_.end(),
                     [&](const auto& regex) { return regex->matches(module); });
}

QuantizationConfig QuantizationConfig::read(const checkpoint::Checkpoint& checkpoint) {
  QuantizationConfig result;
  result.otherwise_ = format_of_dtype(JsonObject(checkpoint.config(), checkpoint.config_where()));
  if (checkpoint.quantization_config() == nullptr) return result;
  const JsonObject quantization(*checkpoint.quantization_config(),
                                checkpoint.config_where() + ": quantization_config");
  const std::string method = quantization.get_string_or("quant_method", "modelopt");
  if (method == "modelopt" || method == "modelopt_fp4") {
    result.read_modelopt(quantization);
  } else if (method == "compressed-tensors") {
    result.method_ = method;
    result.ignored_ = ModulePatterns(quantization.get_strings("ignore"), quantization.where("ignore"));
    result.read_groups(quantization);
  } else if (method == "fp8") {
    result.read_fp8(quantization);
  } else {
    fail_unsupported(quantization.where("quant_method"), fmt::format("'{}'", method));
  }
  return result;
}

void QuantizationConfig::check_method(const checkpoint::Checkpoint& checkpoint) {
  if (checkpoint.quantization_config() == nullptr) return;
  const JsonObject quantization(*checkpoint.quantization_config(),
                                checkpoint.config_where() + ": quantization_config");
  const std::string method = quantization.get_string_or("quant_method", "modelopt");
  for (const std::string_view known : {"modelopt", "modelopt_fp4", "compressed-tensors", "fp8", "quark"})
    if (method == known) return;
  throw Error(ErrorKind::kUnsupported,
              {.where = quantization.where("quant_method"),
               .expected = "weights in NVFP4, MXFP4 or FP8 by ModelOpt, compressed-tensors, Quark or the fp8 "
                           "method",
               .found = fmt::format("'{}'", method),
               .mend = {}});
}

void QuantizationConfig::read_modelopt(const JsonObject& quantization) {
  const std::string algo = quantization.get_string_or("quant_algo", "");
  method_ = "modelopt " + algo;
  const char* ignore_key = quantization.has("ignore") ? "ignore" : "exclude_modules";
  ignored_ = ModulePatterns(quantization.get_strings(ignore_key), quantization.where(ignore_key));
  if (const auto format = format_of_algo(algo)) {
    rules_.push_back({{}, *format});
  } else if (quantization.has("config_groups")) {
    read_groups(quantization);
  } else {
    fail_unsupported(quantization.where("quant_algo"), fmt::format("'{}'", algo));
  }
}

void QuantizationConfig::read_groups(const JsonObject& quantization) {
  const JsonObject groups = quantization.get_object("config_groups");
  for (const auto& [key, value] : groups.json().items()) {
    const JsonObject group(value, groups.where(key));
    std::vector<std::string> targets = group.get_strings("targets");
    // The class name stands for every linear; the rest are names of modules.
    if (std::find(targets.begin(), targets.end(), "Linear") != targets.end()) targets.clear();
    rules_.push_back(
        {ModulePatterns(targets, group.where("targets")), format_of_group(group.get_object("weights"))});
  }
}

void QuantizationConfig::read_fp8(const JsonObject& quantization) {
  method_ = "fp8";
  std::vector<std::string> ignored = quantization.get_strings("modules_to_not_convert");
  // Never converted, and often not listed: the head, the router (not a linear there), the indexer's weights.
  ignored.insert(ignored.end(), {"lm_head", "*.mlp.gate", "*.indexer.weights_proj"});
  ignored_ = ModulePatterns(ignored, quantization.where("modules_to_not_convert"));
  const std::vector<int64_t> block = quantization.get_ints("weight_block_size", 1, 1 << 20);
  if (!block.empty() && block != std::vector<int64_t>{128, 128})
    fail_unsupported(quantization.where("weight_block_size"), quantization.at("weight_block_size").dump());
  rules_.push_back({{}, block.empty() ? WeightFormat::kFp8Tensor : WeightFormat::kFp8Block});
}

WeightFormat QuantizationConfig::format_of(const std::string& module) const {
  if (ignored_.matches(module)) return otherwise_;
  for (const Rule& rule : rules_)
    if (rule.targets.is_empty() || rule.targets.matches(module)) return rule.format;
  return otherwise_;
}

}  // namespace sinter::workbench
