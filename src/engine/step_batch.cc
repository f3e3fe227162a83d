#include "engine/step_batch.h"

#include <algorithm>

namespace sinter::engine {

void StepBatch::clear() {
  ids_.clear();
  seq_idx_.clear();
  positions_.clear();
  logit_rows_.clear();
  pages_.clear();
  max_context_ = 0;
}

void StepBatch::add(const PageList& pages, std::span<const int32_t> ids, int64_t first_position,
                    LogitRows rows) {
  const auto seq_idx = static_cast<int32_t>(pages_.size());
  pages_.push_back(pages.pages());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (rows == LogitRows::kAll || (rows == LogitRows::kLast && i + 1 == ids.size()))
      logit_rows_.push_back(static_cast<int32_t>(ids_.size()));
    ids_.push_back(ids[i]);
    seq_idx_.push_back(seq_idx);
    positions_.push_back(static_cast<int32_t>(first_position + static_cast<int64_t>(i)));
  }
  max_context_ = std::max(max_context_, first_position + static_cast<int64_t>(ids.size()));
}

models::Batch StepBatch::view() {
  size_t width = 1;
  for (const auto& pages : pages_) width = std::max(width, pages.size());
  page_table_.assign(pages_.size() * width, 0);
  for (size_t b = 0; b < pages_.size(); ++b)
    std::ranges::copy(pages_[b], page_table_.begin() + static_cast<ptrdiff_t>(b * width));
  const auto T = static_cast<int64_t>(ids_.size());
  return {
      .ids = TensorView(ids_.data(), DType::kI32, {T}),
      .paged = {.page_table = TensorView(page_table_.data(), DType::kI32,
                                         {static_cast<int64_t>(pages_.size()), static_cast<int64_t>(width)}),
                .seq_idx = TensorView(seq_idx_.data(), DType::kI32, {T}),
                .positions = TensorView(positions_.data(), DType::kI32, {T})},
      .max_context = max_context_,
      .logit_rows = logit_rows_};
}

}  // namespace sinter::engine
