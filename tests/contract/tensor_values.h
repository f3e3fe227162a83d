// Tensors as numbers and as bytes, strides removed.
#pragma once

#include <cstring>
#include <vector>

#include "base/error.h"
#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "tensor/tensor_view.h"

namespace sinter {

// Element offsets of all elements, in row-major order.
inline std::vector<int64_t> element_offsets(const TensorView& view) {
  std::vector<int64_t> offsets = {0};
  for (int dim = 0; dim < view.rank(); ++dim) {
    std::vector<int64_t> longer;
    for (int64_t start : offsets)
      for (int64_t i = 0; i < view.dim(dim); ++i) longer.push_back(start + i * view.stride(dim));
    offsets = std::move(longer);
  }
  return offsets;
}

inline std::vector<double> values_of(const TensorView& view) {
  std::vector<double> values;
  for (int64_t offset : element_offsets(view)) switch (view.dtype()) {
      case DType::kF32: values.push_back(view.data_as<float>()[offset]); break;
      case DType::kBF16: values.push_back(numerics::from_bf16(view.data_as<uint16_t>()[offset])); break;
      case DType::kF16: values.push_back(numerics::from_fp16(view.data_as<uint16_t>()[offset])); break;
      case DType::kI32: values.push_back(view.data_as<int32_t>()[offset]); break;
      default: SINTER_CHECK(false, "values of {}", name(view.dtype()));
    }
  return values;
}

inline std::vector<std::byte> bytes_of(const TensorView& view) {
  const size_t element_bytes = size_bytes(view.dtype());
  std::vector<std::byte> bytes;
  for (int64_t offset : element_offsets(view)) {
    const auto* element =
        static_cast<const std::byte*>(view.data()) + static_cast<size_t>(offset) * element_bytes;
    bytes.insert(bytes.end(), element, element + element_bytes);
  }
  return bytes;
}

}  // namespace sinter
