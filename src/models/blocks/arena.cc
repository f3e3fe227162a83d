#include "models/blocks/arena.h"

#include <algorithm>

namespace sinter::models {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kMinBlockBytes = size_t{1} << 20;

}  // namespace

TensorView Arena::take(DType dtype, const Shape& shape) {
  const size_t needed_bytes =
      (static_cast<size_t>(shape.num_elements()) * size_bytes(dtype) + kAlignment - 1) / kAlignment *
      kAlignment;
  while (block_idx_ < blocks_.size() && needed_bytes > blocks_[block_idx_].size_bytes() - used_bytes_) {
    ++block_idx_;
    used_bytes_ = 0;
  }
  if (block_idx_ == blocks_.size()) {
    const size_t last_bytes = blocks_.empty() ? 0 : blocks_.back().size_bytes();
    context_.replace_step_memory(blocks_.emplace_back(),
                                 std::max({needed_bytes, last_bytes, kMinBlockBytes}));
  }
  // An empty shape still gets an address: views without one mean "no tensor".
  const TensorView view(blocks_[block_idx_].data() + used_bytes_, dtype, shape);
  used_bytes_ += needed_bytes;
  return view;
}

void Arena::reset() {
  block_idx_ = 0;
  used_bytes_ = 0;
  if (blocks_.size() < 2) return;
  size_t total_bytes = 0;
  for (const Buffer& block : blocks_) total_bytes += block.size_bytes();
  blocks_.clear();
  context_.replace_step_memory(blocks_.emplace_back(), total_bytes);
}

}  // namespace sinter::models
