// Softmax attention over a bf16 cache. Belongs inside a target region, after simd_<isa>.h.
//
// Four query heads that read the same rows go together. The rows a token sees come in blocks of 64: their
// scores are found, the softmax goes on from where it was (online: with a new maximum the old sums are scaled
// down), and the values are added. A token's blocks do not depend on its neighbours or on the threads.
#pragma once

namespace sinter::kernels::cpu {
namespace {

inline constexpr int kHeads = 4;
inline constexpr int kRowBlock = 64;

// The rows a token sees, as numbers page * P + offset, a block at a time.
class SeenRows {
 public:
  SeenRows(const ops::PagedBatch& batch, int64_t rows_per_page, const TensorView& indices, int64_t topk,
           int64_t t)
      : rows_(batch, rows_per_page, t),
        rows_per_page_(rows_per_page),
        indices_(topk > 0 ? indices.row<int32_t>(t) : nullptr),
        end_(topk > 0 ? topk : rows_.num_visible()) {}

  // Up to kRowBlock of the rows still to come; 0 at the end.
  int next(int64_t* rows) {
    int count = 0;
    for (; count < kRowBlock && at_ < end_; ++at_) {
      const int64_t position = indices_ == nullptr ? at_ : indices_[at_];
      if (position >= 0) rows[count++] = rows_.page(position) * rows_per_page_ + rows_.offset(position);
    }
    return count;
  }

 private:
  PagedRows rows_;
  int64_t rows_per_page_;
  const int32_t* indices_;
  int64_t end_, at_ = 0;
};

// Up to four heads of one token.
class HeadBlock {
 public:
  using X = Bf16Dot::X;

  HeadBlock(int num_heads, int64_t key_columns, int64_t value_columns, float scale)
      : num_heads_(num_heads), D_(key_columns), Dv_(value_columns), scale_(scale) {
    for (int h = 0; h < kHeads; ++h) {
      // Missing heads repeat the last one; their scores are not used.
      x_[h] = queries_[std::min(h, num_heads - 1)];
      largest_[h] = -std::numeric_limits<float>::infinity();
      total_[h] = zeros();
      for (int64_t c = 0; c < Dv_; c += kWidth) store(sums_[h] + c, zeros());
    }
    for (int h = 0; h < num_heads; ++h)
      for (int64_t d = D_ / Bf16Dot::kStep * Bf16Dot::kStep; d < padded(D_); ++d) queries_[h][d] = X{};
  }

  // Columns [at, at + count) of a head's query.
  void set_query(int h, int64_t at, const uint16_t* from, int64_t count) {
    for (int64_t i = 0; i < count; ++i) queries_[h][at + i] = Bf16Dot::from_bf16(from[i]);
  }

  void add_rows(const uint16_t* const* keys, const uint16_t* const* values, int count) {
    alignas(64) float p[kHeads][kRowBlock];
    find_scores(keys, count, p);
    float shrink[kHeads];
    for (int h = 0; h < num_heads_; ++h) shrink[h] = exponentiate(h, count, p[h]);
    constexpr int kVectors = kWidth == 16 ? 4 : 2;  // what the registers hold of the sums of four heads
    int64_t c = 0;
    for (; c + kVectors * kWidth <= Dv_; c += kVectors * kWidth)
      add_values<kVectors>(values, count, c, p, shrink);
    for (; c < Dv_; c += kWidth) add_values<1>(values, count, c, p, shrink);
  }

  // Zeros when nothing was added.
  void finish(int h, DType dtype, void* y) {
    float lanes[kWidth];
    store(lanes, total_[h]);
    float total = 0;
    for (float lane : lanes) total += lane;
    const float factor = total > 0 ? 1 / total : 0;
    int64_t c = 0;
    for (; c + kWidth <= Dv_; c += kWidth) {
      const Floats sums = multiply(load(sums_[h] + c), all(factor));
      if (dtype == DType::kF32)
        store(static_cast<float*>(y) + c, sums);
      else
        store_bf16(static_cast<uint16_t*>(y) + c, sums);
    }
    for (; c < Dv_; ++c) {
      if (dtype == DType::kF32)
        static_cast<float*>(y)[c] = sums_[h][c] * factor;
      else
        static_cast<uint16_t*>(y)[c] = numerics::to_bf16(sums_[h][c] * factor);
    }
  }

 private:
  static int64_t padded(int64_t columns) {
    return (columns + Bf16Dot::kStep - 1) / Bf16Dot::kStep * Bf16Dot::kStep;
  }

  void find_scores(const uint16_t* const* keys, int count, float (*scores)[kRowBlock]) const {
    for (int j = 0; j < count; j += 4) {
      const uint16_t* rows[4];
      for (int i = 0; i < 4; ++i) rows[i] = keys[std::min(j + i, count - 1)];
      alignas(64) float dots[16];
      Bf16Dot::dots_4x4(x_, rows, D_, dots);
      for (int h = 0; h < kHeads; ++h) std::memcpy(scores[h] + j, dots + 4 * h, 4 * sizeof(float));
    }
  }

  // Scores become exp(score - largest so far). Returns what the sums before shrink by.
  float exponentiate(int h, int count, float* scores) {
    const Floats scale = all(scale_);
    for (int j = count; j % kWidth != 0; ++j) scores[j] = scores[count - 1];
    Floats most = all(largest_[h]);
    for (int j = 0; j < count; j += kWidth) {
      const Floats scaled = multiply(load(scores + j), scale);
      store(scores + j, scaled);
      most = largest(most, scaled);
    }
    float lanes[kWidth];
    store(lanes, most);
    const float before = largest_[h];
    for (float lane : lanes) largest_[h] = std::max(largest_[h], lane);
    alignas(64) float ratio[kWidth];
    store(ratio, exp(all(before - largest_[h])));
    const float shrink = ratio[0];
    for (int j = 0; j < count; j += kWidth) store(scores + j, exp(add(load(scores + j), all(-largest_[h]))));
    for (int j = count; j % kWidth != 0; ++j) scores[j] = 0;
    total_[h] = multiply(total_[h], all(shrink));
    for (int j = 0; j < count; j += kWidth) total_[h] = add(total_[h], load(scores + j));
    return shrink;
  }

  template <int V>
  void add_values(const uint16_t* const* values, int count, int64_t c, const float (*p)[kRowBlock],
                  const float* shrink) {
    Floats sums[kHeads][V];
    SINTER_UNROLL
    for (int h = 0; h < kHeads; ++h) {
      SINTER_UNROLL
      for (int v = 0; v < V; ++v)
        sums[h][v] = h < num_heads_ ? multiply(load(sums_[h] + c + v * kWidth), all(shrink[h])) : zeros();
    }
    const bool is_cut = c + V * kWidth > Dv_;
    for (int j = 0; j < count; ++j) {
      Floats row[V];
      SINTER_UNROLL
      for (int v = 0; v < V; ++v)
        row[v] = is_cut ? load_cut(values[j] + c, Dv_ - c) : load_bf16(values[j] + c + v * kWidth);
      SINTER_UNROLL
      for (int h = 0; h < kHeads; ++h) {
        SINTER_UNROLL
        for (int v = 0; v < V; ++v) sums[h][v] = multiply_add(all(p[h][j]), row[v], sums[h][v]);
      }
    }
    for (int h = 0; h < num_heads_; ++h) {
      SINTER_UNROLL
      for (int v = 0; v < V; ++v) store(sums_[h] + c + v * kWidth, sums[h][v]);
    }
  }

  static Floats load_cut(const uint16_t* from, int64_t count) {
    uint16_t columns[kWidth] = {};
    std::memcpy(columns, from, static_cast<size_t>(count) * sizeof *from);
    return load_bf16(columns);
  }

  int num_heads_;
  int64_t D_, Dv_;
  float scale_;
  const X* x_[kHeads];
  float largest_[kHeads];
  Floats total_[kHeads];
  alignas(64) X queries_[kHeads][kMaxHeadColumns];
  alignas(64) float sums_[kHeads][kMaxHeadColumns];
};

// A block's rows against a key/value head whose first rows are given.
SINTER_INLINE void attend(HeadBlock& block, SeenRows rows, const uint16_t* keys, int64_t key_stride,
                          const uint16_t* values, int64_t value_stride) {
  int64_t numbers[kRowBlock];
  const uint16_t *k[kRowBlock], *v[kRowBlock];
  while (const int count = rows.next(numbers)) {
    for (int j = 0; j < count; ++j) {
      k[j] = keys + numbers[j] * key_stride;
      v[j] = values + numbers[j] * value_stride;
    }
    block.add_rows(k, v, count);
  }
}

SINTER_INLINE void* head_address(const TensorView& y, int64_t t, int64_t q) {
  return static_cast<std::byte*>(y.data()) +
         (t * y.stride(0) + q * y.stride(1)) * static_cast<int64_t>(size_bytes(y.dtype()));
}

}  // namespace
}  // namespace sinter::kernels::cpu
