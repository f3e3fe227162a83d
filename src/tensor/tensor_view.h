// A typed, strided window on memory that somebody else owns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace sinter {

// Strides are in elements; the last dimension is always contiguous. Inputs of an op are views too and are
// never written, by convention: const does not travel through a view.
class TensorView {
 public:
  TensorView() = default;
  // Contiguous.
  TensorView(void* data, DType dtype, Shape shape);
  // For memory that is only read, such as a mapped file.
  TensorView(const void* data, DType dtype, Shape shape)
      : TensorView(const_cast<void*>(data), dtype, shape) {}

  bool is_empty() const { return data_ == nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int dim_idx) const { return shape_[dim_idx]; }
  int64_t stride(int dim_idx) const { return strides_[static_cast<size_t>(dim_idx)]; }
  bool is_contiguous() const;
  int64_t num_elements() const { return shape_.num_elements(); }
  // Of a contiguous view.
  int64_t size_bytes() const;

  void* data() const { return data_; }
  // T only has to have the size of an element (uint16_t for bf16, uint8_t for e4m3).
  template <typename T>
  T* data_as() const {
    check_element_size(sizeof(T));
    return static_cast<T*>(data_);
  }
  // First element of row `row_idx` of a view of rank 2 or more (rows of the outermost dimension).
  template <typename T>
  T* row(int64_t row_idx) const {
    return data_as<T>() + row_idx * strides_[0];
  }

  // Rows, columns or heads [begin, end) along a dimension.
  TensorView slice(int dim_idx, int64_t begin, int64_t end) const;
  // The same elements in another shape; the view must be contiguous, except that the last dimension may
  // be split, and leading dimensions that are contiguous among themselves may be merged.
  TensorView reshape(const Shape& shape) const;
  // The same window at another address: of a copy of the memory.
  TensorView moved_to(void* data) const;

 private:
  void check_element_size(size_t found) const;

  void* data_ = nullptr;
  DType dtype_ = DType::kF32;
  Shape shape_;
  std::array<int64_t, Shape::kMaxRank> strides_{};
};

// Throws Error(kInternal) naming the tensor, the shape expected and the one found.
void check_shape(const TensorView& tensor, const Shape& expected, std::string_view name);
void check_dtype(const TensorView& tensor, DType expected, std::string_view name);

}  // namespace sinter
