// Rows of f32, f16 or bf16 elements as float32, a block at a time, and how plain kernels share out rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/thread_pool.h"
#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "tensor/tensor_view.h"

namespace sinter::kernels::cpu {

// Elements converted at once, on the stack: whole scale blocks of every weight format.
inline constexpr int64_t kBlock = 128;

// Row [i] or [i, j] of a view, whatever its type.
inline std::byte* row(const TensorView& view, int64_t i) {
  return static_cast<std::byte*>(view.data()) +
         i * view.stride(0) * static_cast<int64_t>(size_bytes(view.dtype()));
}
inline std::byte* row(const TensorView& view, int64_t i, int64_t j) {
  return row(view, i) + j * view.stride(1) * static_cast<int64_t>(size_bytes(view.dtype()));
}

// Elements [begin, begin + count) of a row.
inline void load(DType dtype, const std::byte* source, int64_t begin, int64_t count, float* values) {
  switch (dtype) {
    case DType::kF32: std::memcpy(values, source + begin * 4, static_cast<size_t>(count) * 4); return;
    case DType::kBF16: {
      const auto* bits = reinterpret_cast<const uint16_t*>(source) + begin;
      for (int64_t i = 0; i < count; ++i) values[i] = numerics::from_bf16(bits[i]);
      return;
    }
    case DType::kF16: {
      const auto* bits = reinterpret_cast<const uint16_t*>(source) + begin;
      for (int64_t i = 0; i < count; ++i) values[i] = numerics::from_fp16(bits[i]);
      return;
    }
    default: SINTER_CHECK(false, "no arithmetic on {}", name(dtype));
  }
}

inline void store(DType dtype, const float* values, int64_t begin, int64_t count, std::byte* target) {
  switch (dtype) {
    case DType::kF32: std::memcpy(target + begin * 4, values, static_cast<size_t>(count) * 4); return;
    case DType::kBF16: {
      auto* bits = reinterpret_cast<uint16_t*>(target) + begin;
      for (int64_t i = 0; i < count; ++i) bits[i] = numerics::to_bf16(values[i]);
      return;
    }
    default: SINTER_CHECK(false, "no stores of {}", name(dtype));
  }
}

// function(begin, count) over blocks of [begin, end); all but the last have kBlock elements.
template <typename Function>
void for_blocks(int64_t begin, int64_t end, const Function& function) {
  for (; begin < end; begin += kBlock) function(begin, std::min(kBlock, end - begin));
}

// Partial sums side by side: shorter chains of roundings, and vector code without reordering anything.
inline constexpr int kLanes = 16;

class LaneSum {
 public:
  void add_products(const float* a, const float* b, int64_t count) {
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
      for (int lane = 0; lane < kLanes; ++lane) lanes_[lane] += a[i + lane] * b[i + lane];
    for (; i < count; ++i) lanes_[i % kLanes] += a[i] * b[i];
  }
  void add(const float* a, int64_t count) {
    for (int64_t i = 0; i < count; ++i) lanes_[i % kLanes] += a[i];
  }
  float total() const {
    float sums[kLanes];
    std::copy_n(lanes_, kLanes, sums);
    for (int width = kLanes / 2; width > 0; width /= 2)
      for (int lane = 0; lane < width; ++lane) sums[lane] += sums[lane + width];
    return sums[0];
  }

 private:
  float lanes_[kLanes] = {};
};

inline float dot(const float* a, const float* b, int64_t count) {
  LaneSum sum;
  sum.add_products(a, b, count);
  return sum.total();
}

inline float silu(float x) { return x / (1 + std::exp(-x)); }

// function(begin, end) on parts of `count` items, one per worker. A single item is not worth waking anybody.
template <typename Function>
void for_parts(ThreadPool& pool, int64_t count, const Function& function) {
  if (count <= 1) {
    if (count == 1) function(int64_t{0}, count);
    return;
  }
  pool.run([&](int worker_idx) {
    const auto [begin, end] = pool.part(worker_idx, count);
    if (begin < end) function(begin, end);
  });
}

template <typename Function>
void for_rows(ThreadPool& pool, int64_t count, const Function& function) {
  for_parts(pool, count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) function(i);
  });
}

}  // namespace sinter::kernels::cpu
