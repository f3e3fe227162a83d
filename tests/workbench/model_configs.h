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

inline Json published_config(const std::string& model) {
  return parse_json_file(std::filesystem::path(SINTER_SOURCE_DIR) / "models/configs" / model / "config.json");
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
