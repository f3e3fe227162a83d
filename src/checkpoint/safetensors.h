// Reading safetensors: the file is mapped, tensors are views into it, nothing is copied.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/file_map.h"
#include "checkpoint/safetensors_header.h"
#include "tensor/tensor_view.h"

namespace sinter::checkpoint {

class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return map_.path(); }
  const SafetensorsHeader& header() const { return header_; }
  // nullptr when there is none. Linear in the number of tensors: Checkpoint has its own index.
  const TensorEntry* find(std::string_view name) const;
  // Throws Error(kFormat) when there is none.
  TensorView at(std::string_view name) const;
  // Throws Error(kUnsupported) for a type, rank or alignment that no view can have.
  TensorView view(const TensorEntry& entry) const;
  // "model.safetensors: tensor 'lm_head.weight'"
  std::string where(std::string_view name) const;

 private:
  FileMap map_;
  SafetensorsHeader header_;
};

}  // namespace sinter::checkpoint
