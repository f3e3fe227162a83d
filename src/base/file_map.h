// A whole file mapped read-only. Pages come from disk when they are touched; nothing is copied.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace sinter {

class FileMap {
 public:
  // Throws Error(kFile) when the file cannot be opened or is not a regular file. An empty file maps to
  // an empty span.
  explicit FileMap(const std::filesystem::path& path);
  ~FileMap();
  FileMap(FileMap&& other) noexcept;
  FileMap& operator=(FileMap&& other) noexcept;
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
};

// The whole file as text; throws Error(kFile), or kLimit above `max_bytes`.
std::string read_text_file(const std::filesystem::path& path, size_t max_bytes = size_t{1} << 30);

}  // namespace sinter
