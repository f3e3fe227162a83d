// A small checkpoint with random weights for any configuration, made from the tensor plan: routed experts in
// NVFP4, everything else in bf16.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors_writer.h"
#include "models/model.h"
#include "numerics/bf16.h"
#include "numerics/nvfp4.h"

namespace sinter::models {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sinter-models-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// GLM-5's architecture: 3 layers, the first dense, the last sharing the choice of the one before.
inline Json tiny_glm_config() {
  return {{"model_type", "glm_moe_dsa"},
          {"num_hidden_layers", 3},
          {"hidden_size", 128},
          {"num_attention_heads", 4},
          {"q_lora_rank", 64},
          {"kv_lora_rank", 32},
          {"qk_nope_head_dim", 16},
          {"qk_rope_head_dim", 8},
          {"v_head_dim", 16},
          {"intermediate_size", 128},
          {"moe_intermediate_size", 64},
          {"n_routed_experts", 8},
          {"num_experts_per_tok", 2},
          {"n_shared_experts", 1},
          {"first_k_dense_replace", 1},
          {"routed_scaling_factor", 2.5},
          {"index_n_heads", 8},
          {"index_head_dim", 16},
          {"index_topk", 8},
          {"indexer_types", {"full", "full", "shared"}},
          {"rms_norm_eps", 1e-5},
          {"hidden_act", "silu"},
          {"vocab_size", 256},
          {"max_position_embeddings", 96},
          {"rope_parameters", {{"rope_theta", 10000.0}, {"rope_type", "default"}}},
          {"eos_token_id", 1}};
}

inline Json tiny_qwen_config() {
  return {{"model_type", "qwen3_moe"}, {"num_hidden_layers", 2},      {"hidden_size", 128},
          {"num_attention_heads", 4},  {"num_key_value_heads", 2},    {"head_dim", 32},
          {"intermediate_size", 128},  {"moe_intermediate_size", 64}, {"num_experts", 8},
          {"num_experts_per_tok", 2},  {"norm_topk_prob", true},      {"rms_norm_eps", 1e-6},
          {"hidden_act", "silu"},      {"vocab_size", 256},           {"max_position_embeddings", 96},
          {"rope_theta", 10000.0},     {"tie_word_embeddings", true}};
}

class TinyCheckpoint {
 public:
  struct Entry {
    checkpoint::TensorSpec spec;
    std::vector<std::byte> bytes;
  };

  explicit TinyCheckpoint(const Json& config, uint64_t seed = 1) : config_(config), random_(seed) {
    for (const TensorSpec& tensor : tensor_plan(read_decoder_spec(config, "config.json"))) add(tensor);
  }

  Json& config() { return config_; }
  std::vector<Entry>& entries() { return entries_; }
  Entry& entry(const std::string& name) {
    for (Entry& entry : entries_)
      if (entry.spec.name == name) return entry;
    SINTER_CHECK(false, "no tensor {}", name);
  }
  void remove(const std::string& name) {
    std::erase_if(entries_, [&](const Entry& entry) { return entry.spec.name == name; });
  }

  // Into a folder that lives as long as this.
  const std::filesystem::path& write() {
    std::ofstream(folder_.path() / "config.json") << config_.dump(2);
    std::vector<checkpoint::TensorSpec> specs;
    for (const Entry& entry : entries_) specs.push_back(entry.spec);
    checkpoint::SafetensorsWriter writer(folder_.path() / "model.safetensors", specs);
    for (size_t i = 0; i < entries_.size(); ++i) writer.append(i, entries_[i].bytes);
    writer.finish();
    return folder_.path();
  }

 private:
  template <typename T>
  void add(const std::string& name, DType dtype, const Shape& shape, const std::vector<T>& values) {
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    entries_.push_back(
        {{name, dtype, shape}, std::vector<std::byte>(bytes, bytes + values.size() * sizeof(T))});
  }

  void add(const TensorSpec& tensor) {
    std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
    const bool is_norm = tensor.part == Part::kNorms && !tensor.name.ends_with("bias");
    std::normal_distribution<float> normal(0, tensor.kind == TensorSpec::Kind::kVector ? 0.1f
                                              : tensor.kind == TensorSpec::Kind::kTable
                                                  ? 1.0f
                                                  : 1.0f / std::sqrt(static_cast<float>(tensor.K)));
    for (float& value : values) value = normal(random_) + (is_norm ? 1.0f : 0.0f);
    if (tensor.part == Part::kRouted) {
      std::vector<uint8_t> codes(values.size() / 2), scales(values.size() / 16);
      const float scale = numerics::quantize_nvfp4(values, codes, scales).value;
      add(tensor.name + ".weight", DType::kU8, {tensor.N, tensor.K / 2}, codes);
      add(tensor.name + ".weight_scale", DType::kF8E4M3, {tensor.N, tensor.K / 16}, scales);
      add(tensor.name + ".weight_scale_2", DType::kF32, {}, std::vector<float>{scale});
      return;
    }
    const bool is_vector = tensor.kind == TensorSpec::Kind::kVector;
    const std::string name = tensor.kind == TensorSpec::Kind::kLinear ? tensor.name + ".weight" : tensor.name;
    const Shape shape = is_vector ? Shape{tensor.N} : Shape{tensor.N, tensor.K};
    if (tensor.is_f32) return add(name, DType::kF32, shape, values);
    std::vector<uint16_t> bits(values.size());
    std::transform(values.begin(), values.end(), bits.begin(), numerics::to_bf16);
    add(name, DType::kBF16, shape, bits);
  }

  Json config_;
  std::mt19937_64 random_;
  std::vector<Entry> entries_;
  TemporaryFolder folder_;
};

// A model with all it needs, in the order of their lives.
struct LoadedModel {
  explicit LoadedModel(const std::filesystem::path& folder, dispatch::Options options = {},
                       int num_threads = 1)
      : checkpoint(folder),
        pool(num_threads),
        context(host_device(), pool, std::move(options)),
        model(load_model(checkpoint, context)) {}
  checkpoint::Checkpoint checkpoint;
  ThreadPool pool;
  dispatch::Context context;
  std::unique_ptr<Model> model;
};

// The error that `action` throws; fails the test when it throws none.
template <typename Action>
Error error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorKind::kInternal, {});
}

}  // namespace sinter::models
