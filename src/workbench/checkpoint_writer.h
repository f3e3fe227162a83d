// Writes a model folder: tensors stream into shards, one open at a time, and only complete files get
// their names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "checkpoint/safetensors_writer.h"
#include "models/decoder_spec.h"
#include "ops/weights.h"
#include "workbench/inventory.h"

namespace sinter::workbench {

using ProgressReport = std::function<void(int64_t done_bytes, int64_t total_bytes)>;

// The tensors that a checkpoint has for one of the model's: codes first, then scales. Weights only: no
// scales of activations. Throws Error(kUnsupported) when the format cannot hold the matrix.
std::vector<checkpoint::TensorSpec> stored_tensors(const models::TensorSpec& tensor,
                                                   ops::WeightFormat format);

// config.json's quantization_config in ModelOpt's words for parts stored so, null when nothing is
// quantised; `num_layers` and later ones (MTP) are excluded when `has_more_layers`.
Json quantization_block(const models::DecoderSpec& spec, const StoreMap& store, bool has_more_layers);
// The same for hf_quant_config.json.
Json hf_quant_config(const Json& quantization_block);

// Creates `folder`, or takes an empty one; throws Error(kFile) for anything else, and when the disk has
// less room than `needed_bytes`.
void prepare_output_folder(const std::filesystem::path& folder, int64_t needed_bytes);
void write_json_file(const std::filesystem::path& path, const Json& json);
// Tokenizer, template, generation settings, licence: every small file that is neither a weight nor written
// by us. Returns their names.
std::vector<std::string> copy_side_files(const std::filesystem::path& from, const std::filesystem::path& to);

class CheckpointWriter {
 public:
  static constexpr int64_t kShardBytes = int64_t{5} << 30;

  // Tensors must then be given completely and in this order.
  CheckpointWriter(std::filesystem::path folder, std::vector<checkpoint::TensorSpec> tensors,
                   ProgressReport progress, int64_t shard_bytes = kShardBytes);

  int64_t total_bytes() const { return total_bytes_; }
  int64_t num_shards() const { return static_cast<int64_t>(shard_begins_.size()); }
  // The next bytes of the current tensor; the next tensor begins when it is full.
  void append(std::span<const std::byte> bytes);
  // Writes model.safetensors.index.json when there are several shards.
  void finish();

 private:
  void open_shard();
  std::string shard_name(size_t shard_idx) const;
  size_t shard_end(size_t shard_idx) const;

  std::filesystem::path folder_;
  std::vector<checkpoint::TensorSpec> tensors_;
  ProgressReport progress_;
  std::vector<size_t> shard_begins_;  // first tensor of each shard
  std::unique_ptr<checkpoint::SafetensorsWriter> shard_;
  size_t shard_idx_ = 0, tensor_idx_ = 0;
  int64_t tensor_bytes_left_ = 0, done_bytes_ = 0, total_bytes_ = 0;
};

}  // namespace sinter::workbench
