#include "checkpoint/safetensors_header.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "checkpoint/sax.h"

namespace sinter::checkpoint {
namespace {

struct DTypeRow {
  std::string_view name;
  int bits;
  std::optional<DType> dtype;
};

// Every type of the format, so that the sizes of tensors nobody reads are checked too.
constexpr std::array kDTypes = {
    DTypeRow{"F32", 32, DType::kF32},       DTypeRow{"F16", 16, DType::kF16},
    DTypeRow{"BF16", 16, DType::kBF16},     DTypeRow{"F8_E4M3", 8, DType::kF8E4M3},
    DTypeRow{"F8_E8M0", 8, DType::kF8E8M0}, DTypeRow{"U8", 8, DType::kU8},
    DTypeRow{"I8", 8, DType::kI8},          DTypeRow{"I32", 32, DType::kI32},
    DTypeRow{"I64", 64, DType::kI64},       DTypeRow{"BOOL", 8, std::nullopt},
    DTypeRow{"F8_E5M2", 8, std::nullopt},   DTypeRow{"F8_E4M3FNUZ", 8, std::nullopt},
    DTypeRow{"F4", 4, std::nullopt},        DTypeRow{"F8_E5M2FNUZ", 8, std::nullopt},
    DTypeRow{"F6_E2M3", 6, std::nullopt},   DTypeRow{"F6_E3M2", 6, std::nullopt},
    DTypeRow{"I16", 16, std::nullopt},      DTypeRow{"U16", 16, std::nullopt},
    DTypeRow{"U32", 32, std::nullopt},      DTypeRow{"U64", 64, std::nullopt},
    DTypeRow{"F64", 64, std::nullopt},      DTypeRow{"C64", 64, std::nullopt},
};

const DTypeRow* find_dtype(std::string_view name) {
  const auto row = std::ranges::find(kDTypes, name, &DTypeRow::name);
  return row == kDTypes.end() ? nullptr : &*row;
}

std::string item_name(const std::string& tensor) {
  return fmt::format("tensor '{}'", tensor.size() <= 200 ? tensor : tensor.substr(0, 197) + "...");
}

class HeaderReader : public SaxReader {
 public:
  HeaderReader(std::string_view where, SafetensorsHeader& header) : SaxReader(where), header_(header) {}

  bool start_object(size_t) override {
    switch (state_) {
      case State::kStart: state_ = State::kTop; return true;
      case State::kMetadata: state_ = State::kMetadataEntries; return true;
      case State::kTensor:
        state_ = State::kEntry;
        has_dtype_ = has_shape_ = false;
        num_offsets_ = -1;
        return true;
      default: return SaxReader::start_object(0);
    }
  }

  bool key(string_t& key) override {
    switch (state_) {
      case State::kTop:
        if (key == "__metadata__") {
          if (has_metadata_) fail("key '__metadata__'", "one", "a second one");
          has_metadata_ = true;
          state_ = State::kMetadata;
        } else {
          header_.tensors.emplace_back().name = key;
          state_ = State::kTensor;
        }
        return true;
      case State::kMetadataEntries:
        metadata_key_ = key;
        state_ = State::kMetadataValue;
        return true;
      default: entry_key(key); return true;
    }
  }

  bool string(string_t& value) override {
    if (state_ == State::kDType) {
      entry().dtype = value;
      has_dtype_ = true;
      state_ = State::kEntry;
      return true;
    }
    if (state_ == State::kMetadataValue) {
      if (!header_.metadata.emplace(metadata_key_, value).second)
        fail("key '__metadata__'", "each key once", fmt::format("'{}' twice", metadata_key_));
      state_ = State::kMetadataEntries;
      return true;
    }
    return SaxReader::string(value);
  }

  bool start_array(size_t) override {
    if (state_ == State::kShape)
      state_ = State::kShapeItems;
    else if (state_ == State::kOffsets)
      state_ = State::kOffsetItems;
    else
      return SaxReader::start_array(0);
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ == State::kShapeItems && value <= static_cast<uint64_t>(INT64_MAX)) {
      entry().shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (state_ == State::kOffsetItems && num_offsets_ < 2) {
      (num_offsets_++ == 0 ? entry().begin : entry().end) = value;
      return true;
    }
    return SaxReader::number_unsigned(value);
  }

  bool end_array() override {
    if (state_ == State::kOffsetItems && num_offsets_ != 2)
      fail(item_name(entry().name), "two data_offsets", fmt::format("{}", num_offsets_));
    state_ = State::kEntry;
    return true;
  }

  bool end_object() override {
    if (state_ == State::kEntry) {
      const char* missing = !has_dtype_        ? "dtype"
                            : !has_shape_      ? "shape"
                            : num_offsets_ < 0 ? "data_offsets"
                                               : "";
      if (*missing != 0) fail(item_name(entry().name), fmt::format("key '{}'", missing), "no such key");
    }
    state_ = State::kTop;
    return true;
  }

 private:
  enum class State {
    kStart,
    kTop,
    kMetadata,
    kMetadataEntries,
    kMetadataValue,
    kTensor,
    kEntry,
    kDType,
    kShape,
    kShapeItems,
    kOffsets,
    kOffsetItems,
  };

  TensorEntry& entry() { return header_.tensors.back(); }

  void entry_key(const std::string& key) {
    const bool is_repeated = (key == "dtype" && has_dtype_) || (key == "shape" && has_shape_) ||
                             (key == "data_offsets" && num_offsets_ >= 0);
    if (is_repeated) fail(item_name(entry().name), "each key once", fmt::format("'{}' twice", key));
    if (key == "dtype") {
      state_ = State::kDType;
    } else if (key == "shape") {
      has_shape_ = true;
      state_ = State::kShape;
    } else if (key == "data_offsets") {
      num_offsets_ = 0;
      state_ = State::kOffsets;
    } else {
      fail(item_name(entry().name), "the keys dtype, shape and data_offsets",
           fmt::format("'{}'", key.substr(0, 60)));
    }
  }

  std::pair<std::string, std::string> item_and_expected() const override {
    const std::string item = header_.tensors.empty() ? "" : item_name(header_.tensors.back().name);
    switch (state_) {
      case State::kStart: return {"", "a JSON object"};
      case State::kMetadata: return {"key '__metadata__'", "an object"};
      case State::kMetadataValue: return {"key '__metadata__'", "strings"};
      case State::kTensor: return {item, "an object with dtype, shape and data_offsets"};
      case State::kDType: return {item, "a dtype as a string"};
      case State::kShape: return {item, "a shape as a list"};
      case State::kShapeItems: return {item, "dimensions from 0 to 2^63 - 1"};
      case State::kOffsets: return {item, "data_offsets as a list"};
      case State::kOffsetItems: return {item, "two data_offsets, not negative"};
      default: return {"", "a key"};
    }
  }

  SafetensorsHeader& header_;
  State state_ = State::kStart;
  std::string metadata_key_;
  bool has_metadata_ = false, has_dtype_ = false, has_shape_ = false;
  int num_offsets_ = -1;
};

[[noreturn]] void fail(std::string where, std::string expected, std::string found, std::string mend = {}) {
  throw Error(ErrorKind::kFormat, {std::move(where), std::move(expected), std::move(found), std::move(mend)});
}

// Bytes that shape and type ask for; nullopt when they overflow 64 bits or end inside a byte.
std::optional<uint64_t> expected_bytes(const TensorEntry& entry, int bits) {
  uint64_t total = static_cast<uint64_t>(bits);
  bool is_empty = false;
  for (const int64_t dim : entry.shape) {
    is_empty |= dim == 0;
    if (dim != 0 && __builtin_mul_overflow(total, static_cast<uint64_t>(dim), &total)) return std::nullopt;
  }
  if (is_empty) return 0;
  if (total % 8 != 0) return std::nullopt;
  return total / 8;
}

void check_entry(const TensorEntry& entry, uint64_t data_bytes, std::string_view where) {
  const auto item = [&] { return fmt::format("{}: {}", where, item_name(entry.name)); };
  if (entry.begin > entry.end || entry.end > data_bytes)
    fail(item(), fmt::format("data_offsets within the {} data bytes of the file", data_bytes),
         fmt::format("[{}, {}]", entry.begin, entry.end),
         entry.begin <= entry.end ? "the file may be cut short: compare its size with the original" : "");
  const DTypeRow* row = find_dtype(entry.dtype);
  if (row == nullptr) return;  // an error only for who reads it
  const std::optional<uint64_t> bytes = expected_bytes(entry, row->bits);
  if (!bytes)
    fail(item(), "a whole number of bytes that fits in 64 bits",
         fmt::format("{} {}", entry.dtype, shape_text(entry.shape)));
  if (*bytes != entry.size_bytes())
    fail(item(), fmt::format("{} bytes for {} {}", *bytes, entry.dtype, shape_text(entry.shape)),
         fmt::format("{}", entry.size_bytes()));
}

// Names once each; offsets side by side from the first data byte to the last.
void check_tiling(SafetensorsHeader& header, uint64_t data_bytes, std::string_view where) {
  auto& tensors = header.tensors;
  std::ranges::sort(tensors, {}, &TensorEntry::name);
  const auto twin = std::ranges::adjacent_find(tensors, {}, &TensorEntry::name);
  if (twin != tensors.end())
    fail(fmt::format("{}: {}", where, item_name(twin->name)), "each name once", "it twice");
  std::ranges::stable_sort(tensors, [](const TensorEntry& a, const TensorEntry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  uint64_t position = 0;
  for (const TensorEntry& entry : tensors) {
    if (entry.begin != position)
      fail(fmt::format("{}: {}", where, item_name(entry.name)),
           fmt::format("its data at byte {}, where the tensor before it ends", position),
           fmt::format("{} at {}", entry.begin < position ? "an overlap" : "a hole", entry.begin));
    position = entry.end;
  }
  if (position != data_bytes)
    fail(std::string(where), fmt::format("{} data bytes, as its header says", position),
         fmt::format("{}", data_bytes));
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, std::string_view where) {
  constexpr uint64_t kLengthBytes = 8;
  if (file.size() < kLengthBytes)
    fail(std::string(where), "a safetensors file", fmt::format("{} bytes in all", file.size()));
  uint64_t header_bytes = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) header_bytes |= std::to_integer<uint64_t>(file[i]) << (8 * i);
  if (header_bytes > file.size() - kLengthBytes) {
    const bool is_lfs_pointer = std::memcmp(file.data(), "version ", kLengthBytes) == 0;
    fail(std::string(where), fmt::format("a header of {} bytes, as its first 8 bytes say", header_bytes),
         fmt::format("{} bytes in all", file.size()),
         is_lfs_pointer ? "this is a Git LFS pointer, not the file: run `git lfs pull`" : "");
  }
  if (header_bytes > kMaxHeaderBytes)
    fail(std::string(where), fmt::format("a header of at most {} bytes", kMaxHeaderBytes),
         fmt::format("{}", header_bytes));

  SafetensorsHeader header;
  header.data_begin = kLengthBytes + header_bytes;
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes, header_bytes);
  HeaderReader(where, header).read(text);

  const uint64_t data_bytes = file.size() - header.data_begin;
  for (const TensorEntry& entry : header.tensors) check_entry(entry, data_bytes, where);
  check_tiling(header, data_bytes, where);
  return header;
}

std::optional<DType> dtype_of_safetensors(std::string_view name) {
  const DTypeRow* row = find_dtype(name);
  return row == nullptr ? std::nullopt : row->dtype;
}

std::string_view safetensors_name(DType dtype) {
  if (dtype == DType::kF4E2M1x2) return "U8";  // as ModelOpt and compressed-tensors store pairs of codes
  return std::ranges::find(kDTypes, std::optional(dtype), &DTypeRow::dtype)->name;
}

std::string shape_text(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace sinter::checkpoint
