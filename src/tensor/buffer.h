// Owned memory: bytes and how to release them. Device buffers are made by device/.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "tensor/tensor_view.h"

namespace sinter {

class Buffer {
 public:
  Buffer() = default;
  Buffer(std::byte* data, size_t size_bytes, std::function<void(std::byte*)> release);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Host memory, zeroed, aligned to 64 bytes, or to 2 MiB with huge pages advised from 2 MiB on. Throws
  // Error(kMemory) naming the size.
  static Buffer host(size_t size_bytes);

  std::byte* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }
  std::span<std::byte> bytes() const { return {data_, size_bytes_}; }
  // A contiguous view at a byte offset; must fit.
  TensorView view(DType dtype, const Shape& shape, size_t offset_bytes = 0) const;

 private:
  std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
  std::function<void(std::byte*)> release_;
};

}  // namespace sinter
