// The tokens of one step, gathered from one or more sequences into what the model takes.
#pragma once

#include <span>
#include <vector>

#include "engine/pages.h"
#include "models/model.h"

namespace sinter::engine {

enum class LogitRows { kNone, kLast, kAll };

// Reused from step to step: after the largest one nothing is allocated.
class StepBatch {
 public:
  void clear();
  // Tokens of one sequence at first_position and after; its pages must reach that far.
  void add(const PageList& pages, std::span<const int32_t> ids, int64_t first_position, LogitRows rows);
  int64_t num_logit_rows() const { return static_cast<int64_t>(logit_rows_.size()); }
  // Points into this object; valid until the next change.
  models::Batch view();

 private:
  std::vector<int32_t> ids_, seq_idx_, positions_, logit_rows_;
  std::vector<std::span<const int32_t>> pages_;  // of each sequence
  std::vector<int32_t> page_table_;              // [B, longest list]
  int64_t max_context_ = 0;
};

}  // namespace sinter::engine
