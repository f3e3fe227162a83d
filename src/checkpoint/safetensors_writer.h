// Writing safetensors: the layout is known first, the data comes in any order and in pieces, so that a
// model larger than memory can be written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tensor/tensor_view.h"

namespace sinter::checkpoint {

struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
};

class SafetensorsWriter {
 public:
  // Writes to "<path>.part" until finish(). Throws Error(kFile) when it cannot, Error(kUsage) when a name
  // comes twice.
  SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorSpec> tensors,
                    const std::map<std::string, std::string>& metadata = {});
  // Without finish() the partial file is removed.
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // The next bytes of tensor `tensor_idx` (position in the list given).
  void append(size_t tensor_idx, std::span<const std::byte> bytes);
  // Every tensor must be complete. Syncs and renames: other processes see the whole file or none.
  void finish();

 private:
  struct Slot {
    TensorSpec spec;
    uint64_t begin = 0, size_bytes = 0, written_bytes = 0;  // begin: from the start of the file
  };
  void write_at(uint64_t offset, std::span<const std::byte> bytes);
  [[noreturn]] void fail_io(const char* what) const;

  std::filesystem::path path_, part_path_;
  std::vector<Slot> slots_;
  int fd_ = -1;
};

struct NamedTensor {
  std::string name;
  TensorView view;  // contiguous
};
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace sinter::checkpoint
