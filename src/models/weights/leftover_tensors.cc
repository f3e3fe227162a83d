#include "models/weights/leftover_tensors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string_view>
#include <unordered_set>

#include <fmt/core.h>

#include "base/error.h"

namespace sinter::models {
namespace {

constexpr std::string_view kEmbedding = "model.embed_tokens.weight", kHead = "lm_head.weight";

// Beside a matrix, whatever it is stored as.
constexpr std::array<std::string_view, 10> kNeighbours = {
    "weight",         "weight_packed",       "weight_shape", "weight_scale",
    "weight_scale_2", "weight_global_scale", "scale_inv",    "weight_scale_inv",
    "input_scale",    "input_global_scale"};
// They change nothing where they are zero.
constexpr std::array<std::string_view, 2> kZeroPoints = {"weight_zero_point", "input_zero_point"};
constexpr std::array<std::string_view, 5> kIdleEndings = {".k_scale", ".v_scale", ".input_scale",
                                                          ".input_global_scale", ".rotary_emb.inv_freq"};

template <typename Words>
bool contains(const Words& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// "a.b.c" -> "a.b", "c"
std::pair<std::string_view, std::string_view> split_last(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {{}, name};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

class Readers {
 public:
  Readers(const checkpoint::Checkpoint& checkpoint, const DecoderSpec& spec,
          const std::vector<TensorSpec>& plan)
      : checkpoint_(checkpoint), spec_(spec) {
    for (const TensorSpec& tensor : plan) add(tensor);
  }

  bool reads(std::string_view name) const {
    if (whole_.contains(name)) return true;
    const auto [module, last] = split_last(name);
    if (modules_.contains(module))
      return contains(kNeighbours, last) || (contains(kZeroPoints, last) && is_zero(name));
    return fused_.contains(module) && is_fused(last);
  }

  bool is_idle(std::string_view name) const {
    return std::ranges::any_of(kIdleEndings, [&](auto ending) { return name.ends_with(ending); }) ||
           is_mtp(name);
  }

 private:
  void add(const TensorSpec& tensor) {
    if (tensor.kind != TensorSpec::Kind::kLinear) {
      whole_.insert(tensor.name);
      return;
    }
    if (tensor.expert >= 0) {
      const std::string_view experts = split_last(split_last(tensor.name).first).first;
      if (fused_.contains(experts)) return;
      // Where there are fused experts, separate ones are not read.
      if (checkpoint_.has(fmt::format("{}.gate_up_proj", experts))) {
        fused_.insert(experts);
        return;
      }
    }
    modules_.insert(tensor.name);
  }

  static bool is_fused(std::string_view last) {
    for (const std::string_view matrix : {"gate_up_proj", "down_proj"}) {
      if (last == matrix) return true;
      if (last.starts_with(matrix) && last[matrix.size()] == '_' &&
          contains(kNeighbours, last.substr(matrix.size() + 1)))
        return true;
    }
    return false;
  }

  bool is_zero(std::string_view name) const {
    const TensorView tensor = checkpoint_.at(name);
    const auto* bytes = static_cast<const char*>(tensor.data());
    return std::all_of(bytes, bytes + tensor.size_bytes(), [](char byte) { return byte == 0; });
  }

  // Only such a layer joins an embedding to a hidden state (eh_proj); the count in config.json would also
  // cover a last layer that config.json leaves out.
  bool is_mtp(std::string_view name) const {
    constexpr std::string_view kLayers = "model.layers.";
    if (!name.starts_with(kLayers)) return false;
    int64_t layer = 0;
    const char* const begin = name.data() + kLayers.size();
    const auto [end, error] = std::from_chars(begin, name.data() + name.size(), layer);
    if (error != std::errc() || layer < spec_.L) return false;
    const std::string module = fmt::format("{}{}.eh_proj.", kLayers, layer);
    return checkpoint_.has(module + "weight") || checkpoint_.has(module + "weight_packed");
  }

  const checkpoint::Checkpoint& checkpoint_;
  const DecoderSpec& spec_;
  std::unordered_set<std::string_view> whole_;    // names of tensors
  std::unordered_set<std::string_view> modules_;  // of matrices
  std::unordered_set<std::string_view> fused_;    // "model.layers.3.mlp.experts"
};

void check_tied_head(const checkpoint::Checkpoint& checkpoint) {
  const TensorView head = checkpoint.at(kHead), embedding = checkpoint.at(kEmbedding);
  if (head.dtype() == embedding.dtype() && head.shape() == embedding.shape() &&
      std::memcmp(head.data(), embedding.data(), static_cast<size_t>(embedding.size_bytes())) == 0)
    return;
  throw Error(
      ErrorKind::kFormat,
      {.where = checkpoint.where(kHead),
       .expected = fmt::format("a copy of '{}', as tie_word_embeddings of config.json is true", kEmbedding),
       .found = "another matrix",
       .mend = "config.json does not fit the checkpoint"});
}

}  // namespace

void check_leftover_tensors(const checkpoint::Checkpoint& checkpoint, const DecoderSpec& spec,
                            const std::vector<TensorSpec>& plan) {
  const Readers readers(checkpoint, spec, plan);
  std::string_view first;
  int64_t num_leftover = 0;
  for (const auto& stored : checkpoint.tensors()) {
    const std::string_view name = stored.entry->name;
    if (readers.reads(name) || readers.is_idle(name)) continue;
    if (spec.has_tied_head && name == kHead && checkpoint.has(kEmbedding)) {
      check_tied_head(checkpoint);
      continue;
    }
    if (num_leftover++ == 0) first = name;
  }
  if (num_leftover == 0) return;
  throw Error(ErrorKind::kFormat,
              {.where = checkpoint.where(first),
               .expected = "only tensors that a model of this config.json reads",
               .found = num_leftover == 1 ? "this one, which it does not read"
                                          : fmt::format("{} that it does not read", num_leftover),
               .mend = "config.json does not fit the checkpoint: compare its layers, experts and biases"});
}

}  // namespace sinter::models
