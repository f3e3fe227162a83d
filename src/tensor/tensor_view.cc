#include "tensor/tensor_view.h"

#include "base/error.h"

namespace sinter {

TensorView::TensorView(void* data, DType dtype, Shape shape) : data_(data), dtype_(dtype), shape_(shape) {
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides_[static_cast<size_t>(i)] = stride;
    stride *= shape[i];
  }
}

bool TensorView::is_contiguous() const {
  int64_t expected = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (dim(i) != 1 && stride(i) != expected) return false;
    expected *= dim(i);
  }
  return true;
}

int64_t TensorView::size_bytes() const {
  SINTER_CHECK(is_contiguous(), "size_bytes of a strided view {}", shape_.to_string());
  return num_elements() * static_cast<int64_t>(sinter::size_bytes(dtype_));
}

void TensorView::check_element_size(size_t found) const {
  SINTER_CHECK(found == sinter::size_bytes(dtype_), "element of {} bytes for {}", found, name(dtype_));
}

TensorView TensorView::slice(int dim_idx, int64_t begin, int64_t end) const {
  SINTER_CHECK(dim_idx >= 0 && dim_idx < rank() && 0 <= begin && begin <= end && end <= dim(dim_idx),
               "slice {}:{} of dimension {} of {}", begin, end, dim_idx, shape_.to_string());
  TensorView result = *this;
  std::array<int64_t, Shape::kMaxRank> dims{};
  for (int i = 0; i < rank(); ++i) dims[static_cast<size_t>(i)] = i == dim_idx ? end - begin : dim(i);
  result.shape_ = Shape(std::span<const int64_t>(dims.data(), static_cast<size_t>(rank())));
  result.data_ = static_cast<std::byte*>(data_) +
                 begin * stride(dim_idx) * static_cast<int64_t>(sinter::size_bytes(dtype_));
  return result;
}

TensorView TensorView::reshape(const Shape& shape) const {
  SINTER_CHECK(shape.num_elements() == num_elements(), "reshape {} to {}", shape_.to_string(),
               shape.to_string());
  if (is_contiguous()) return TensorView(data_, dtype_, shape);
  // Strided: walk both shapes from the innermost dimension, matching groups of equal product; a group of
  // ours must be contiguous within itself.
  TensorView result = *this;
  result.shape_ = shape;
  int old_dim = rank() - 1;
  int new_dim = shape.rank() - 1;
  while (new_dim >= 0) {
    SINTER_CHECK(old_dim >= 0, "reshape {} to {}", shape_.to_string(), shape.to_string());
    int64_t group = dim(old_dim);
    const int64_t group_stride = stride(old_dim);
    int64_t covered = 1;
    while (new_dim >= 0) {
      while (covered * shape[new_dim] > group) {
        SINTER_CHECK(old_dim > 0 && stride(old_dim - 1) == group_stride * group,
                     "reshape of strided {} to {}", shape_.to_string(), shape.to_string());
        group *= dim(--old_dim);
      }
      result.strides_[static_cast<size_t>(new_dim)] = group_stride * covered;
      covered *= shape[new_dim--];
      if (covered == group && (new_dim < 0 || shape[new_dim] != 1)) break;
    }
    SINTER_CHECK(covered == group, "reshape of strided {} to {}", shape_.to_string(), shape.to_string());
    --old_dim;
  }
  return result;
}

TensorView TensorView::moved_to(void* data) const {
  TensorView result = *this;
  result.data_ = data;
  return result;
}

void check_shape(const TensorView& tensor, const Shape& expected, std::string_view name) {
  if (tensor.shape() == expected) return;
  throw Error(ErrorKind::kInternal, {.where = fmt::format("tensor '{}'", name),
                                     .expected = "shape " + expected.to_string(),
                                     .found = tensor.is_empty() ? "no tensor" : tensor.shape().to_string(),
                                     .mend = {}});
}

void check_dtype(const TensorView& tensor, DType expected, std::string_view name) {
  if (tensor.dtype() == expected) return;
  throw Error(ErrorKind::kInternal, {.where = fmt::format("tensor '{}'", name),
                                     .expected = std::string(sinter::name(expected)),
                                     .found = std::string(sinter::name(tensor.dtype())),
                                     .mend = {}});
}

}  // namespace sinter
