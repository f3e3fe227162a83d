// Configurations of published models, and a folder to put one in.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace sinter::workbench {

inline Json published_config(std::string_view model) {
  const Json mla_moe = {{"num_hidden_layers", 61},
                        {"hidden_size", 7168},
                        {"num_attention_heads", 128},
                        {"num_key_value_heads", 128},
                        {"q_lora_rank", 1536},
                        {"kv_lora_rank", 512},
                        {"qk_nope_head_dim", 128},
                        {"qk_rope_head_dim", 64},
                        {"v_head_dim", 128},
                        {"intermediate_size", 18432},
                        {"moe_intermediate_size", 2048},
                        {"n_routed_experts", 256},
                        {"num_experts_per_tok", 8},
                        {"n_shared_experts", 1},
                        {"first_k_dense_replace", 3},
                        {"n_group", 8},
                        {"topk_group", 4},
                        {"norm_topk_prob", true},
                        {"scoring_func", "sigmoid"},
                        {"topk_method", "noaux_tc"},
                        {"routed_scaling_factor", 2.5},
                        {"rms_norm_eps", 1e-6},
                        {"hidden_act", "silu"},
                        {"vocab_size", 129280},
                        {"rope_theta", 10000},
                        {"max_position_embeddings", 163840},
                        {"tie_word_embeddings", false},
                        {"attention_bias", false}};
  const Json yarn = {{"type", "yarn"},
                     {"factor", 40},
                     {"beta_fast", 32},
                     {"beta_slow", 1},
                     {"mscale", 1.0},
                     {"mscale_all_dim", 1.0},
                     {"original_max_position_embeddings", 4096}};
  const auto changed = [](Json config, const Json& changes) {
    config.update(changes);
    return config;
  };
  if (model == "glm-5")
    return changed(mla_moe, {{"model_type", "glm_moe_dsa"},
                             {"num_hidden_layers", 78},
                             {"num_nextn_predict_layers", 1},
                             {"hidden_size", 6144},
                             {"num_attention_heads", 64},
                             {"num_key_value_heads", 64},
                             {"q_lora_rank", 2048},
                             {"qk_nope_head_dim", 192},
                             {"qk_head_dim", 256},
                             {"v_head_dim", 256},
                             {"head_dim", 64},
                             {"intermediate_size", 12288},
                             {"n_group", 1},
                             {"topk_group", 1},
                             {"index_n_heads", 32},
                             {"index_head_dim", 128},
                             {"index_topk", 2048},
                             {"rms_norm_eps", 1e-5},
                             {"max_position_embeddings", 202752},
                             {"vocab_size", 154880},
                             {"rope_theta", nullptr},
                             {"rope_parameters", {{"rope_theta", 1000000}, {"rope_type", "default"}}},
                             {"eos_token_id", {154820, 154827, 154829}}});
  if (model == "deepseek-v3")
    return changed(mla_moe, {{"model_type", "deepseek_v3"}, {"rope_scaling", yarn}});
  if (model == "deepseek-v3.2")
    return changed(mla_moe, {{"model_type", "deepseek_v32"},
                             {"rope_scaling", yarn},
                             {"index_n_heads", 64},
                             {"index_head_dim", 128},
                             {"index_topk", 2048}});
  if (model == "kimi-k2")
    return changed(mla_moe, {{"model_type", "kimi_k2"},
                             {"num_attention_heads", 64},
                             {"num_key_value_heads", 64},
                             {"first_k_dense_replace", 1},
                             {"n_routed_experts", 384},
                             {"n_group", 1},
                             {"topk_group", 1},
                             {"routed_scaling_factor", 2.827},
                             {"vocab_size", 163840},
                             {"rope_theta", 50000},
                             {"rope_scaling", changed(yarn, {{"factor", 32}, {"beta_fast", 1}})},
                             {"max_position_embeddings", 131072}});
  const Json glm4 = {{"model_type", "glm4_moe"},
                     {"num_hidden_layers", 46},
                     {"hidden_size", 4096},
                     {"num_attention_heads", 96},
                     {"num_key_value_heads", 8},
                     {"head_dim", 128},
                     {"intermediate_size", 10944},
                     {"moe_intermediate_size", 1408},
                     {"n_routed_experts", 128},
                     {"num_experts_per_tok", 8},
                     {"n_shared_experts", 1},
                     {"first_k_dense_replace", 1},
                     {"n_group", 1},
                     {"topk_group", 1},
                     {"norm_topk_prob", true},
                     {"routed_scaling_factor", 1.0},
                     {"attention_bias", true},
                     {"use_qk_norm", false},
                     {"partial_rotary_factor", 0.5},
                     {"rope_theta", 1000000},
                     {"rms_norm_eps", 1e-5},
                     {"hidden_act", "silu"},
                     {"vocab_size", 151552},
                     {"max_position_embeddings", 131072},
                     {"tie_word_embeddings", false},
                     {"num_nextn_predict_layers", 1},
                     {"eos_token_id", {151329, 151336, 151338}}};
  if (model == "glm-4.5-air") return glm4;
  if (model == "glm-4.5")
    return changed(glm4, {{"num_hidden_layers", 92},
                          {"hidden_size", 5120},
                          {"intermediate_size", 12288},
                          {"moe_intermediate_size", 1536},
                          {"n_routed_experts", 160},
                          {"first_k_dense_replace", 3},
                          {"routed_scaling_factor", 2.5},
                          {"use_qk_norm", true}});
  const Json qwen3 = {{"model_type", "qwen3_moe"},
                      {"num_hidden_layers", 48},
                      {"hidden_size", 2048},
                      {"num_attention_heads", 32},
                      {"num_key_value_heads", 4},
                      {"head_dim", 128},
                      {"intermediate_size", 6144},
                      {"moe_intermediate_size", 768},
                      {"num_experts", 128},
                      {"num_experts_per_tok", 8},
                      {"decoder_sparse_step", 1},
                      {"mlp_only_layers", Json::array()},
                      {"norm_topk_prob", true},
                      {"attention_bias", false},
                      {"rope_theta", 1000000},
                      {"rms_norm_eps", 1e-6},
                      {"hidden_act", "silu"},
                      {"vocab_size", 151936},
                      {"max_position_embeddings", 40960},
                      {"tie_word_embeddings", false},
                      {"eos_token_id", 151645}};
  if (model == "qwen3-30b") return qwen3;
  if (model == "qwen3-235b")
    return changed(qwen3, {{"num_hidden_layers", 94},
                           {"hidden_size", 4096},
                           {"num_attention_heads", 64},
                           {"intermediate_size", 12288},
                           {"moe_intermediate_size", 1536}});
  SINTER_CHECK(false, "no configuration of {}", model);
}

// GLM-5's architecture at a size for tests.
inline Json tiny_config() {
  Json config = published_config("glm-5");
  config.update({{"num_hidden_layers", 3},
                 {"num_nextn_predict_layers", 0},
                 {"hidden_size", 64},
                 {"num_attention_heads", 4},
                 {"num_key_value_heads", 4},
                 {"q_lora_rank", 32},
                 {"kv_lora_rank", 32},
                 {"qk_nope_head_dim", 32},
                 {"qk_rope_head_dim", 16},
                 {"qk_head_dim", 48},
                 {"v_head_dim", 32},
                 {"intermediate_size", 96},
                 {"moe_intermediate_size", 32},
                 {"n_routed_experts", 8},
                 {"num_experts_per_tok", 2},
                 {"first_k_dense_replace", 1},
                 {"index_n_heads", 4},
                 {"index_head_dim", 32},
                 {"index_topk", 8},
                 {"vocab_size", 128},
                 {"max_position_embeddings", 256},
                 {"eos_token_id", 1}});
  return config;
}

// A folder that lives as long as this.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sinter-workbench-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  explicit TemporaryFolder(const Json& config) : TemporaryFolder() { write("config.json", config.dump()); }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string str() const { return path_.string(); }
  void write(std::string_view file, std::string_view text) const {
    std::ofstream(path_ / file, std::ios::binary) << text;
  }

 private:
  std::filesystem::path path_;
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

}  // namespace sinter::workbench
