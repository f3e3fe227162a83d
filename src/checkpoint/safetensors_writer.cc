#include "checkpoint/safetensors_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/safetensors_header.h"

namespace sinter::checkpoint {
namespace {

// Data begins on a cache line, so that mapped weights do too when their sizes allow.
constexpr uint64_t kDataAlignment = 64;

// The file is renamed into place at the end, which would replace a link, a pipe or a device by a file: links
// are followed, and what else is there is refused.
std::filesystem::path output_path(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path target = path;
  constexpr int kMaxLinks = 40;  // as many as the system follows
  for (int i = 0; i < kMaxLinks && std::filesystem::is_symlink(target, error); ++i)
    target = target.parent_path() / std::filesystem::read_symlink(target, error);
  if (std::filesystem::is_symlink(target, error))
    throw Error(
        ErrorKind::kFile,
        {.where = path.string(), .expected = "a file to write", .found = "links in a circle", .mend = {}});
  const std::filesystem::file_status status = std::filesystem::status(target, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw Error(ErrorKind::kFile, {.where = path.string(),
                                   .expected = "a file to write, or none yet",
                                   .found = "something that is not a file",
                                   .mend = {}});
  return target;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorSpec> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : path_(output_path(path)), part_path_(path_.string() + ".part") {
  for (TensorSpec& spec : tensors) {
    const uint64_t num_bytes = static_cast<uint64_t>(spec.shape.num_elements()) * size_bytes(spec.dtype);
    slots_.push_back({.spec = std::move(spec), .begin = 0, .size_bytes = num_bytes, .written_bytes = 0});
  }
  // Wide types first: then every tensor is aligned to its type without holes, which the format forbids.
  std::vector<size_t> order(slots_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](size_t slot) { return size_bytes(slots_[slot].spec.dtype); });

  // Text by hand: a JSON tree would search all earlier names for each new one.
  std::string header = "{";
  if (!metadata.empty()) header += "\"__metadata__\":" + Json(metadata).dump() + ",";
  uint64_t position = 0;
  std::vector<std::string_view> names;
  for (const size_t i : order) {
    Slot& slot = slots_[i];
    names.push_back(slot.spec.name);
    header += fmt::format(R"({}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}},)",
                          Json(slot.spec.name).dump(), safetensors_name(slot.spec.dtype),
                          shape_text(slot.spec.shape.dims()), position, position + slot.size_bytes);
    slot.begin = position;
    position += slot.size_bytes;
  }
  if (header.back() == ',') header.pop_back();
  header += "}";
  header.append((kDataAlignment - (header.size() + 8) % kDataAlignment) % kDataAlignment, ' ');
  for (Slot& slot : slots_) slot.begin += 8 + header.size();

  std::ranges::sort(names);
  if (const auto twin = std::ranges::adjacent_find(names); twin != names.end())
    throw Error(ErrorKind::kUsage, {.where = path_.string(),
                                    .expected = "each tensor name once",
                                    .found = fmt::format("'{}' twice", *twin),
                                    .mend = {}});

  fd_ = ::open(part_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) fail_io("creating");
  std::array<std::byte, 8> length{};
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<std::byte>(header.size() >> (8 * i) & 0xff);
  write_at(0, length);
  write_at(8, std::as_bytes(std::span(header)));
}

SafetensorsWriter::~SafetensorsWriter() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(part_path_.c_str());
}

void SafetensorsWriter::append(size_t tensor_idx, std::span<const std::byte> bytes) {
  SINTER_CHECK(fd_ >= 0 && tensor_idx < slots_.size(), "tensor {} of {}", tensor_idx, slots_.size());
  Slot& slot = slots_[tensor_idx];
  SINTER_CHECK(bytes.size() <= slot.size_bytes - slot.written_bytes, "'{}': {} bytes after {} of {}",
               slot.spec.name, bytes.size(), slot.written_bytes, slot.size_bytes);
  write_at(slot.begin + slot.written_bytes, bytes);
  slot.written_bytes += bytes.size();
}

void SafetensorsWriter::finish() {
  for (const Slot& slot : slots_)
    SINTER_CHECK(slot.written_bytes == slot.size_bytes, "'{}': {} of {} bytes", slot.spec.name,
                 slot.written_bytes, slot.size_bytes);
  if (::fsync(fd_) != 0) fail_io("writing");
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0 || ::rename(part_path_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    ::unlink(part_path_.c_str());
    errno = error;
    fail_io("writing");
  }
}

void SafetensorsWriter::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_io("writing");
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
}

void SafetensorsWriter::fail_io(const char* what) const {
  throw Error(ErrorKind::kFile, {.where = path_.string(),
                                 .expected = {},
                                 .found = fmt::format("{} failed: {}", what, std::strerror(errno)),
                                 .mend = {}});
}

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<TensorSpec> specs;
  for (const NamedTensor& tensor : tensors)
    specs.push_back({tensor.name, tensor.view.dtype(), tensor.view.shape()});
  SafetensorsWriter writer(path, std::move(specs), metadata);
  for (size_t i = 0; i < tensors.size(); ++i)
    writer.append(i, {static_cast<const std::byte*>(tensors[i].view.data()),
                      static_cast<size_t>(tensors[i].view.size_bytes())});
  writer.finish();
}

}  // namespace sinter::checkpoint
