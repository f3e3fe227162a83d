#include "checkpoint/safetensors.h"

#include <algorithm>

#include "base/error.h"

namespace sinter::checkpoint {

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : map_(path), header_(parse_safetensors_header(map_.bytes(), path.string())) {}

std::string SafetensorsFile::where(std::string_view name) const {
  return fmt::format("{}: tensor '{}'", path().string(), name);
}

const TensorEntry* SafetensorsFile::find(std::string_view name) const {
  const auto entry = std::ranges::find(header_.tensors, name, &TensorEntry::name);
  return entry == header_.tensors.end() ? nullptr : &*entry;
}

TensorView SafetensorsFile::at(std::string_view name) const {
  const TensorEntry* entry = find(name);
  if (entry == nullptr)
    throw Error(ErrorKind::kFormat,
                {.where = where(name), .expected = "a tensor of this name", .found = "none", .mend = {}});
  return view(*entry);
}

TensorView SafetensorsFile::view(const TensorEntry& entry) const {
  const auto fail = [&](std::string expected, std::string found, std::string mend) {
    throw Error(ErrorKind::kUnsupported,
                {where(entry.name), std::move(expected), std::move(found), std::move(mend)});
  };
  const std::optional<DType> dtype = dtype_of_safetensors(entry.dtype);
  if (!dtype) fail("one of F32 F16 BF16 F8_E4M3 F8_E8M0 U8 I8 I32 I64", entry.dtype, {});
  if (entry.shape.size() > Shape::kMaxRank)
    fail(fmt::format("at most {} dimensions", Shape::kMaxRank), fmt::format("{}", entry.shape.size()), {});
  const std::byte* data = map_.bytes().data() + header_.data_begin + entry.begin;
  const size_t alignment = size_bytes(*dtype);
  if (reinterpret_cast<uintptr_t>(data) % alignment != 0)
    fail(fmt::format("its data at a multiple of {} bytes", alignment),
         fmt::format("byte {}", header_.data_begin + entry.begin),
         "write the file anew with a current safetensors package");
  return TensorView(data, *dtype, Shape(entry.shape));
}

}  // namespace sinter::checkpoint
