#include "engine/step_batch.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "device/gpu_memory.h"
#include "dispatch/gpu_runtime.h"

namespace sinter::engine {

// Fixed tensors in a GPU's memory and their copy in pinned memory.
struct StepBatch::DeviceTensors {
  enum Field { kIds, kSeqIdx, kPositions, kLogitRows, kPageTable, kNumFields };

  DeviceTensors(dispatch::GpuRuntime& runtime, const Limits& limits_of)
      : limits(limits_of), stream(runtime.stream), copied(runtime.device, GpuEvent::Kind::kUntimed) {
    constexpr int64_t kAlignment = 64;  // numbers
    int64_t size = 0;
    for (int field = 0; field < kNumFields; ++field) {
      offset[static_cast<size_t>(field)] = size;
      const int64_t count = field == kPageTable ? limits.num_sequences * limits.num_pages : limits.num_tokens;
      size += (count + kAlignment - 1) / kAlignment * kAlignment;
    }
    const auto size_bytes = static_cast<size_t>(size) * sizeof(int32_t);
    memory = device_buffer(runtime.device, size_bytes);
    staging = pinned_buffer(runtime.device, size_bytes);
  }

  int32_t* staged(Field field) const {
    return reinterpret_cast<int32_t*>(staging.data()) + offset[static_cast<size_t>(field)];
  }
  TensorView tensor(Field field, const Shape& shape) const {
    return memory.view(DType::kI32, shape,
                       static_cast<size_t>(offset[static_cast<size_t>(field)]) * sizeof(int32_t));
  }

  void put(Field field, std::span<const int32_t> numbers) {
    size_t& known = num_known[static_cast<size_t>(field)];
    int32_t* const to = staged(field);
    if (numbers.size() <= known && std::equal(numbers.begin(), numbers.end(), to)) return;
    // The GPU may still be reading what the last step put there.
    if (is_copying && !copied.is_reached()) copied.synchronize();
    is_copying = false;
    std::ranges::copy(numbers, to);
    known = std::max(known, numbers.size());
    const TensorView target = tensor(field, {static_cast<int64_t>(numbers.size())});
    stream.copy(target.data(), to, numbers.size_bytes());
    is_changed = true;
  }
  void mark() {
    if (!is_changed) return;
    stream.record(copied);
    is_copying = true;
    is_changed = false;
  }

  Limits limits;
  GpuStream& stream;
  GpuEvent copied;
  bool is_changed = false, is_copying = false;
  std::array<int64_t, kNumFields> offset{};    // numbers
  std::array<size_t, kNumFields> num_known{};  // numbers at the front that are the same on both sides
  Buffer memory, staging;
};

StepBatch::StepBatch() = default;

StepBatch::StepBatch(const dispatch::Context& context, const Limits& limits) {
  if (context.gpu() != nullptr) device_ = std::make_unique<DeviceTensors>(*context.gpu(), limits);
}

StepBatch::~StepBatch() {
  // The GPU may be reading the pinned memory, whose release does not wait.
  if (!device_ || !device_->is_copying) return;
  try {
    device_->copied.synchronize();
  } catch (const Error&) {  // told by the next wait of somebody who can
  }
}

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
  size_t width = device_ ? static_cast<size_t>(device_->limits.num_pages) : 1;
  for (const auto& pages : pages_) {
    SINTER_CHECK(!device_ || pages.size() <= width, "{} pages in a table of {}", pages.size(), width);
    width = std::max(width, pages.size());
  }
  page_table_.assign(pages_.size() * width, 0);
  for (size_t b = 0; b < pages_.size(); ++b)
    std::ranges::copy(pages_[b], page_table_.begin() + static_cast<ptrdiff_t>(b * width));
  if (device_) return device_view();
  const auto T = static_cast<int64_t>(ids_.size());
  return {
      .ids = TensorView(ids_.data(), DType::kI32, {T}),
      .paged = {.page_table = TensorView(page_table_.data(), DType::kI32,
                                         {static_cast<int64_t>(pages_.size()), static_cast<int64_t>(width)}),
                .seq_idx = TensorView(seq_idx_.data(), DType::kI32, {T}),
                .positions = TensorView(positions_.data(), DType::kI32, {T})},
      .max_context = max_context_,
      .logit_rows = logit_rows_,
      .logit_row_ids = TensorView(logit_rows_.data(), DType::kI32, {num_logit_rows()})};
}

models::Batch StepBatch::device_view() {
  using Field = DeviceTensors::Field;
  DeviceTensors& device = *device_;
  const auto T = static_cast<int64_t>(ids_.size()), B = static_cast<int64_t>(pages_.size());
  SINTER_CHECK(T <= device.limits.num_tokens && B <= device.limits.num_sequences,
               "{} tokens of {} sequences in a batch of at most {} of {}", T, B, device.limits.num_tokens,
               device.limits.num_sequences);
  device.put(Field::kIds, ids_);
  device.put(Field::kSeqIdx, seq_idx_);
  device.put(Field::kPositions, positions_);
  device.put(Field::kLogitRows, logit_rows_);
  device.put(Field::kPageTable, page_table_);
  device.mark();
  return {.ids = device.tensor(Field::kIds, {T}),
          .paged = {.page_table = device.tensor(Field::kPageTable, {B, device.limits.num_pages}),
                    .seq_idx = device.tensor(Field::kSeqIdx, {T}),
                    .positions = device.tensor(Field::kPositions, {T})},
          .max_context = max_context_,
          .logit_rows = logit_rows_,
          .logit_row_ids = device.tensor(Field::kLogitRows, {num_logit_rows()})};
}

TensorView StepBatch::device_ids(int64_t count) const {
  SINTER_CHECK(device_ && count <= device_->limits.num_tokens, "{} ids on a GPU", count);
  return device_->tensor(DeviceTensors::kIds, {count});
}

void StepBatch::note_device_ids(std::span<const int32_t> ids) {
  SINTER_CHECK(device_, "ids on a GPU");
  DeviceTensors& device = *device_;
  if (device.is_copying && !device.copied.is_reached()) device.copied.synchronize();
  std::ranges::copy(ids, device.staged(DeviceTensors::kIds));
  size_t& known = device.num_known[DeviceTensors::kIds];
  known = std::max(known, ids.size());
}

}  // namespace sinter::engine
