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
  using enum ops::WeightFormat;
  switch (format) {
    case kF32: return function(gpu::F32Format{});
    case kF16: return function(gpu::F16Format{});
    case kBF16: return function(gpu::Bf16Format{});
    case kFp8Tensor: return function(gpu::Fp8TensorFormat{});
    case kFp8Block: return function(gpu::Fp8BlockFormat{});
    case kNvfp4: return function(gpu::Nvfp4Format{});
    case kMxfp4: return function(gpu::Mxfp4Format{});
    case kMixed: return function(gpu::MixedFormat{});
  }
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
