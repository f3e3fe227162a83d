#include "tensor/shape.h"

#include <algorithm>

#include "base/error.h"

namespace sinter {

Shape::Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  SINTER_CHECK(dims.size() <= kMaxRank, "rank {}", dims.size());
  int64_t product = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    SINTER_CHECK(dims[i] >= 0, "dimension {} is {}", i, dims[i]);
    SINTER_CHECK(!__builtin_mul_overflow(product, dims[i], &product), "the number of elements overflows");
    dims_[i] = dims[i];
  }
}

int64_t Shape::num_elements() const {
  int64_t product = 1;
  for (int64_t dim : dims()) product *= dim;
  return product;
}

bool Shape::operator==(const Shape& other) const { return std::ranges::equal(dims(), other.dims()); }

std::string Shape::to_string() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", (*this)[i]);
  return text + "]";
}

}  // namespace sinter
