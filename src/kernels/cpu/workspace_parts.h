// Arrays within a workspace, each from a cache line of its own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sinter::kernels::cpu {

// With no base the pointers are only good for size_bytes(): one function lays out the parts for both the
// size and the launch.
class WorkspaceParts {
 public:
  explicit WorkspaceParts(std::byte* base = nullptr) : base_(base) {}

  template <typename T>
  T* take(int64_t count) {
    std::byte* part = base_ == nullptr ? nullptr : base_ + used_bytes_;
    used_bytes_ += (static_cast<size_t>(count) * sizeof(T) + kLine - 1) / kLine * kLine;
    return reinterpret_cast<T*>(part);
  }
  size_t size_bytes() const { return used_bytes_; }

 private:
  static constexpr size_t kLine = 64;
  std::byte* base_;
  size_t used_bytes_ = 0;
};

}  // namespace sinter::kernels::cpu
