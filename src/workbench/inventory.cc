#include "workbench/inventory.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "workbench/plan_weights.h"
#include "workbench/quantization_config.h"

namespace sinter::workbench {
namespace {

using models::Part;
using models::TensorSpec;
using ops::WeightFormat;

constexpr std::array kStoreParts = {Part::kRouted,  Part::kShared, Part::kDense, Part::kAttention,
                                    Part::kIndexer, Part::kRouter, Part::kHead,  Part::kEmbedding};
constexpr std::array kFormats = {WeightFormat::kBF16,      WeightFormat::kF16,      WeightFormat::kF32,
                                 WeightFormat::kFp8Tensor, WeightFormat::kFp8Block, WeightFormat::kNvfp4,
                                 WeightFormat::kMxfp4};

template <typename Values>
std::string list_names(const Values& values) {
  std::string text;
  for (const auto& value : values) text += fmt::format("{}{}", text.empty() ? "" : ", ", name(value));
  return text;
}

template <typename Values>
auto find_name(const Values& values, std::string_view text) -> std::optional<typename Values::value_type> {
  for (const auto& value : values)
    if (name(value) == text) return value;
  return std::nullopt;
}

// Small and precise in every recipe: norms, biases, and the float32 vector of the router.
WeightFormat vector_format(const TensorSpec& tensor) {
  return tensor.is_f32 ? WeightFormat::kF32 : WeightFormat::kBF16;
}

WeightFormat format_of_dtype(DType dtype, const std::string& where) {
  switch (dtype) {
    case DType::kF32: return WeightFormat::kF32;
    case DType::kF16: return WeightFormat::kF16;
    case DType::kBF16: return WeightFormat::kBF16;
    default:
      throw Error(
          ErrorKind::kFormat,
          {.where = where, .expected = "f32, f16 or bf16", .found = std::string(name(dtype)), .mend = ""});
  }
}

WeightFormat stored_format(const checkpoint::Checkpoint& checkpoint, PlanWeights& weights,
                           const TensorSpec& tensor) {
  if (tensor.kind == TensorSpec::Kind::kLinear) return weights.find(tensor).format;
  const Shape shape = tensor.kind == TensorSpec::Kind::kVector ? Shape{tensor.N} : Shape{tensor.N, tensor.K};
  return format_of_dtype(checkpoint.at(tensor.name, shape).dtype(), checkpoint.where(tensor.name));
}

}  // namespace

StoreMap parse_store(std::string_view text) {
  StoreMap store;
  std::vector<std::string_view> seen;
  for (bool has_more = !text.empty(); has_more;) {
    const size_t comma = text.find(',');
    const std::string_view entry = text.substr(0, comma);
    has_more = comma != std::string_view::npos;
    if (has_more) text.remove_prefix(comma + 1);
    const size_t equals = entry.find('=');
    const auto fail = [&](std::string expected) {
      throw Error(ErrorKind::kUsage, {.where = "--store",
                                      .expected = std::move(expected),
                                      .found = fmt::format("'{}'", entry),
                                      .mend = ""});
    };
    if (equals == std::string_view::npos) fail("PART=FORMAT[,PART=FORMAT...]");
    const std::string_view part_name = entry.substr(0, equals);
    const auto part = find_name(kStoreParts, part_name);
    const auto format = find_name(kFormats, entry.substr(equals + 1));
    if (std::ranges::find(seen, part_name) != seen.end()) fail("each part once");
    seen.push_back(part_name);
    if (!part && part_name != "all") fail("a part out of all, " + list_names(kStoreParts));
    if (!format) fail("a format out of " + list_names(kFormats));
    if (part) {
      store[*part] = *format;
      continue;
    }
    for (const Part each : kStoreParts)
      if (each != Part::kEmbedding) store[each] = *format;
  }
  return store;
}

Inventory take_inventory(const ModelFolder& folder, const StoreMap& what_if) {
  Inventory inventory;
  inventory.tensors = models::tensor_plan(folder.spec);
  const checkpoint::Checkpoint& checkpoint = folder.checkpoint;
  inventory.source = checkpoint.has_weights() ? "checkpoint" : "config.json";
  if (!what_if.empty()) inventory.source += " with --store";
  std::optional<QuantizationConfig> quantization;
  if (!checkpoint.has_weights()) quantization = QuantizationConfig::read(checkpoint);
  if (quantization) inventory.method = quantization->method();
  PlanWeights weights(checkpoint, folder.spec);

  inventory.formats.reserve(inventory.tensors.size());
  inventory.stored_bytes.reserve(inventory.tensors.size());
  for (const TensorSpec& tensor : inventory.tensors) {
    const bool is_matrix = tensor.kind != TensorSpec::Kind::kVector;
    const auto planned = is_matrix ? what_if.find(tensor.part) : what_if.end();
    WeightFormat format;
    if (planned != what_if.end()) {
      format = planned->second;
    } else if (!quantization) {
      format = stored_format(checkpoint, weights, tensor);
    } else {
      format = tensor.kind == TensorSpec::Kind::kLinear ? quantization->format_of(tensor.name)
                                                        : vector_format(tensor);
    }
    inventory.formats.push_back(format);
    inventory.stored_bytes.push_back(ops::stored_bytes(format, tensor.N, tensor.K));
  }
  return inventory;
}

}  // namespace sinter::workbench
