#include "tensor/buffer.h"

#include <sys/mman.h>

#include <utility>

#include "base/error.h"

namespace sinter {

Buffer::Buffer(std::byte* data, size_t size_bytes, std::function<void(std::byte*)> release)
    : data_(data), size_bytes_(size_bytes), release_(std::move(release)) {}

Buffer::~Buffer() {
  if (data_ != nullptr && release_) release_(data_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      release_(std::move(other.release_)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(release_, other.release_);
  return *this;
}

Buffer Buffer::host(size_t size_bytes) {
  constexpr size_t kHugePage = size_t{2} << 20;
  if (size_bytes == 0) return {};
  // Anonymous pages are zero; mapping one huge page more leaves room to align.
  const bool huge = size_bytes >= kHugePage;
  const size_t mapped_bytes = huge ? size_bytes + kHugePage : size_bytes;
  void* base = mapped_bytes < size_bytes ? MAP_FAILED
                                         : ::mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE,
                                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    throw Error(ErrorKind::kMemory, {.where = "host memory",
                                     .expected = fmt::format("{} bytes", size_bytes),
                                     .found = "not enough memory",
                                     .mend = {}});
  auto* data = static_cast<std::byte*>(base);
  if (huge) {
    data += (kHugePage - reinterpret_cast<uintptr_t>(data) % kHugePage) % kHugePage;
    ::madvise(data, size_bytes, MADV_HUGEPAGE);
  }
  return Buffer(data, size_bytes, [base, mapped_bytes](std::byte*) { ::munmap(base, mapped_bytes); });
}

TensorView Buffer::view(DType dtype, const Shape& shape, size_t offset_bytes) const {
  const size_t needed_bytes = static_cast<size_t>(shape.num_elements()) * sinter::size_bytes(dtype);
  SINTER_CHECK(offset_bytes <= size_bytes_ && needed_bytes <= size_bytes_ - offset_bytes,
               "view of {} bytes at {} in a buffer of {}", needed_bytes, offset_bytes, size_bytes_);
  return TensorView(data_ + offset_bytes, dtype, shape);
}

}  // namespace sinter
