// The tokens of one step, gathered from one or more sequences into what the model takes.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/pages.h"
#include "models/model.h"

namespace sinter::engine {

enum class LogitRows { kNone, kLast, kAll };

// Reused from step to step: after the largest one nothing is allocated. On a GPU the tensors lie at fixed
// addresses, so that a captured step reads the numbers of each new one, and only what differs is copied.
class StepBatch {
 public:
  struct Limits {
    int64_t num_tokens, num_sequences, num_pages;  // pages of one sequence: the width of the table on a GPU
  };

  StepBatch();                                                        // host memory, any size
  StepBatch(const dispatch::Context& context, const Limits& limits);  // where `context` computes
  ~StepBatch();
  StepBatch(const StepBatch&) = delete;
  StepBatch& operator=(const StepBatch&) = delete;

  void clear();
  // Tokens of one sequence at first_position and after; its pages must reach that far.
  void add(const PageList& pages, std::span<const int32_t> ids, int64_t first_position, LogitRows rows);
  int64_t num_logit_rows() const { return static_cast<int64_t>(logit_rows_.size()); }
  // Valid until the next change. On a GPU puts copies into the context's stream.
  models::Batch view();

  // On a GPU: where the ids of the first tokens lie, for a sampler to write those of the next step to ...
  TensorView device_ids(int64_t count) const;
  // ... and what it wrote, once known: view() need not copy them then.
  void note_device_ids(std::span<const int32_t> ids);

 private:
  struct DeviceTensors;
  models::Batch device_view();

  std::vector<int32_t> ids_, seq_idx_, positions_, logit_rows_;
  std::vector<std::span<const int32_t>> pages_;  // of each sequence
  std::vector<int32_t> page_table_;              // [B, longest list], on a GPU [B, num_pages]
  int64_t max_context_ = 0;
  std::unique_ptr<DeviceTensors> device_;
};

}  // namespace sinter::engine
