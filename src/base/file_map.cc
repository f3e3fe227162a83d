#include "base/file_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace sinter {
namespace {

[[noreturn]] void fail_io(const std::filesystem::path& path, const char* expected, int error) {
  throw Error(ErrorKind::kFile,
              {.where = path.string(), .expected = expected, .found = std::strerror(error), .mend = {}});
}

// Opens without waiting for the writer of a pipe, which is then refused as no regular file.
class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) fail_io(path, "a readable file", errno);
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

FileMap::FileMap(const std::filesystem::path& path) : path_(path) {
  Descriptor fd(path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) fail_io(path, "a readable file", errno);
  if (!S_ISREG(info.st_mode))
    throw Error(
        ErrorKind::kFile,
        {.where = path.string(), .expected = "a regular file", .found = "something else", .mend = {}});
  size_bytes_ = static_cast<size_t>(info.st_size);
  if (size_bytes_ == 0) return;
  void* data = ::mmap(nullptr, size_bytes_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) fail_io(path, "to map the file", errno);
  data_ = static_cast<const std::byte*>(data);
}

FileMap::~FileMap() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_bytes_);
}

FileMap::FileMap(FileMap&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

FileMap& FileMap::operator=(FileMap&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

std::string read_text_file(const std::filesystem::path& path, size_t max_bytes) {
  FileMap map(path);
  const auto bytes = map.bytes();
  if (bytes.size() > max_bytes)
    throw Error(ErrorKind::kLimit, {.where = path.string(),
                                    .expected = fmt::format("at most {} bytes", max_bytes),
                                    .found = fmt::format("{} bytes", bytes.size()),
                                    .mend = {}});
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace sinter
