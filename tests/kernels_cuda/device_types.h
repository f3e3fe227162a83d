// From the types and formats of a problem to those of device code, and views to what kernels take.
#pragma once

#include "kernels/gpu/formats.h"
#include "ops/op.h"

namespace sinter::kernels_cuda {

template <typename Function>
void with_type(DType dtype, const Function& function) {
  if (dtype == DType::kF32)
    function(float{});
  else if (dtype == DType::kF16)
    function(gpu::F16{});
  else
    function(gpu::Bf16{});
}

// f32 or bf16.
template <typename Function>
void with_float_type(DType dtype, const Function& function) {
  if (dtype == DType::kF32)
    function(float{});
  else
    function(gpu::Bf16{});
}

template <typename Function>
void with_format_type(ops::WeightFormat format, const Function& function) {
  if (format == ops::WeightFormat::kMixed) return function(gpu::MixedFormat{});
  gpu::with_format(gpu::MixedFormat{}, gpu::Matrix{nullptr, nullptr, 1, static_cast<int>(format)}, function);
}

inline gpu::Matrix matrix_of(const ops::Weight& weight) {
  return {weight.data.data(), weight.scale.data(), weight.scale_tensor, static_cast<int>(weight.format)};
}

template <typename T>
T* memory_of(const TensorView& view) {
  return static_cast<T*>(view.data());
}

inline int narrow(int64_t number) { return static_cast<int>(number); }
inline int blocks(int64_t count, int64_t size) { return static_cast<int>((count + size - 1) / size); }

}  // namespace sinter::kernels_cuda
