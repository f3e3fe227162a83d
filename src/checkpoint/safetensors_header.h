// The header of a safetensors file: 8 bytes of length (little endian), then JSON
//   {"name": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, ..., "__metadata__": {"k": "v"}}
// then the data. Nothing in it is believed: offsets must tile the data without overlap or hole, and agree
// with shape and type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace sinter::checkpoint {

// The limit of the reference implementation.
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;

struct TensorEntry {
  std::string name;
  std::string dtype;  // as written; may be one that we do not know
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes, from data_begin

  uint64_t size_bytes() const { return end - begin; }
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // by offset
  std::map<std::string, std::string> metadata;
  uint64_t data_begin = 0;  // bytes from the start of the file
};

// `file` is the whole file; `where` names it. Throws Error(kFormat) for anything the format forbids, at
// the price of time and memory in proportion to the header.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, std::string_view where);

// nullopt for types that no view can have (F64, BOOL, ...).
std::optional<DType> dtype_of_safetensors(std::string_view name);
std::string_view safetensors_name(DType dtype);

std::string shape_text(std::span<const int64_t> shape);  // "[2048, 384]"

}  // namespace sinter::checkpoint
