// Softmax attention of one query, tile by tile: sums are kept relative to the largest score so far, so one
// pass over the cache suffices and nothing of the size of the context is stored.
#pragma once

#include <limits>

#include "kernels/cpu/elements.h"
#include "kernels/cpu/paged_rows.h"

namespace sinter::kernels::cpu {

// sum_i q[i] * row[begin + i]
inline float dot_row(const float* q, DType dtype, const std::byte* cache_row, int64_t begin, int64_t count) {
  LaneSum sum;
  for_blocks(0, count, [&](int64_t first, int64_t size) {
    float values[kBlock];
    load(dtype, cache_row, begin + first, size, values);
    sum.add_products(q + first, values, size);
  });
  return sum.total();
}

// sum[0, width) = sum_p softmax(score)(p) * value(p), zeros when there is no row.
//   position(i), i < count   a row, or -1 for none; none is touched that is not named
//   score(p)                 float
//   value(p)                 its value row, `width` elements of `dtype`
template <typename Position, typename Score, typename Value>
void softmax_sum(int64_t count, const Position& position, const Score& score, const Value& value, DType dtype,
                 int64_t width, float* sum) {
  constexpr int64_t kTile = 64;
  float max = -std::numeric_limits<float>::infinity(), mass = 0;
  std::fill(sum, sum + width, 0.0f);
  for (int64_t next = 0; next < count;) {
    const std::byte* values[kTile];
    float weights[kTile];
    float new_max = max;
    int64_t size = 0;
    for (; next < count && size < kTile; ++next) {
      const int64_t p = position(next);
      if (p < 0) continue;
      values[size] = value(p);
      weights[size] = score(p);
      new_max = std::max(new_max, weights[size++]);
    }
    if (size == 0) break;

    const float rescale = max == new_max ? 1 : std::exp(max - new_max);
    max = new_max;
    LaneSum tile_mass;
    for (int64_t i = 0; i < size; ++i) weights[i] = weights[i] == max ? 1 : std::exp(weights[i] - max);
    tile_mass.add(weights, size);
    mass = mass * rescale + tile_mass.total();
    for_blocks(0, width, [&](int64_t begin, int64_t block) {
      float tile_sum[kBlock] = {}, v[kBlock];
      for (int64_t i = 0; i < size; ++i) {
        load(dtype, values[i], begin, block, v);
        for (int64_t j = 0; j < block; ++j) tile_sum[j] += weights[i] * v[j];
      }
      for (int64_t j = 0; j < block; ++j) sum[begin + j] = sum[begin + j] * rescale + tile_sum[j];
    });
  }
  if (mass == 0) return;
  for (int64_t j = 0; j < width; ++j) sum[j] /= mass;
}

// The rows a token attends to: those that its indices name, or all that it sees.
class AttendedRows {
 public:
  AttendedRows(const PagedRows& rows, const TensorView& indices, int64_t t)
      : named_(indices.is_empty() ? nullptr : indices.row<int32_t>(t)),
        count_(named_ == nullptr ? rows.num_visible() : indices.dim(1)) {}

  int64_t count() const { return count_; }
  int64_t position(int64_t i) const { return named_ == nullptr ? i : named_[i]; }

 private:
  const int32_t* named_;
  int64_t count_;
};

}  // namespace sinter::kernels::cpu
