// A few non-negative dimensions, outermost first.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace sinter {

class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  // Throws Error(kInternal) above kMaxRank or on a negative dimension.
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int dim_idx) const { return dims_[static_cast<size_t>(dim_idx)]; }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  // 1 for rank 0. The product is checked at construction: it always fits in int64.
  int64_t num_elements() const;
  bool operator==(const Shape& other) const;
  std::string to_string() const;  // "[2048, 384]"

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace sinter
