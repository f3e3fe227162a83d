// A model folder in the Hugging Face layout: configuration files and the tensors of all its safetensors
// files, mapped. Knows files and names, not models.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "checkpoint/safetensors.h"

namespace sinter::checkpoint {

class Checkpoint {
 public:
  // A tensor and the file that holds it.
  struct Stored {
    const TensorEntry* entry;
    const SafetensorsFile* file;
  };

  // Needs config.json; tensors may be missing altogether (has_weights). Where there is an index or a file
  // name that counts shards, all of them must be there. Files beside the index count too
  // (mtp.safetensors); of a name in both, the indexed one is taken.
  explicit Checkpoint(std::filesystem::path folder);
  ~Checkpoint();
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;

  const std::filesystem::path& folder() const;
  const Json& config() const;
  std::string config_where() const;  // path of config.json, for errors
  // nullptr when the folder has none.
  const Json* generation_config() const;
  // What config.json or hf_quant_config.json say of quantisation, nullptr if neither does. For people:
  // how a tensor is stored is read from the tensors themselves. Without the list of every quantised layer.
  const Json* quantization_config() const;

  bool has_weights() const { return !tensors().empty(); }
  // By name.
  const std::vector<Stored>& tensors() const;
  uint64_t total_bytes() const;

  bool has(std::string_view name) const { return find(name) != nullptr; }
  // nullptr when there is none.
  const Stored* find(std::string_view name) const;
  // Throw Error(kFormat) when the tensor is missing or has another shape, kUnsupported when its type has no
  // view.
  TensorView at(std::string_view name) const;
  TensorView at(std::string_view name, const Shape& expected) const;
  // As float32: in place when stored so, otherwise (f16, bf16) converted once and kept as long as this
  // checkpoint. For small tensors; safe from several threads.
  TensorView at_f32(std::string_view name, const Shape& expected) const;
  // "DIR/model-00001-of-00002.safetensors: tensor 'lm_head.weight'"; the folder when there is no such tensor.
  std::string where(std::string_view name) const;

 private:
  struct Contents;
  std::unique_ptr<Contents> contents_;
};

}  // namespace sinter::checkpoint
