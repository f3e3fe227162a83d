#include "kernels/cuda/context_splits.h"

#include <algorithm>

namespace sinter::kernels::cuda {
namespace {

constexpr int64_t kLeastRows = 256, kMostSplits = 64, kMostTokens = 32;
constexpr int kUsualSms = 132;

int64_t aligned(int64_t size_bytes) { return (size_bytes + 255) / 256 * 256; }

}  // namespace

ContextSplits split_context(int64_t num_tokens, int64_t num_rows, int64_t num_blocks,
                            const DeviceInfo& device) {
  if (num_tokens > kMostTokens) return {};
  const int64_t num_sms = device.gpu->num_sms == 0 ? kUsualSms : device.gpu->num_sms;
  const int64_t wanted = std::min(2 * num_sms / std::max<int64_t>(1, num_blocks), kMostSplits);
  const int64_t num = std::min(wanted, num_rows / kLeastRows);
  if (num <= 1) return {};
  const int64_t steps = (num_rows + num * gpu::kContextStep - 1) / (num * gpu::kContextStep);
  const int64_t rows = steps * gpu::kContextStep;
  return {narrow((num_rows + rows - 1) / rows), narrow(rows)};
}

Config config_of(const ContextSplits& splits) {
  return {{"num_splits", splits.num}, {"split_rows", splits.rows}};
}

ContextSplits splits_of(const Config& config) {
  return {narrow(config.get("num_splits")), narrow(config.get("split_rows"))};
}

SplitSpace::SplitSpace(int64_t num_items, int64_t Dv, const ContextSplits& splits) {
  const int64_t num_parts = splits.num == 1 ? 0 : num_items * splits.num;
  sums = 0;
  states = aligned(num_parts * Dv * 4);
  size_bytes = states + aligned(num_parts * 2 * 4);
}

GpuProgram merge_program(DType q) { return {"cuda/attention_merge.cu", {{"SINTER_Q", element_of(q)}}}; }

void launch_merge(LaunchContext& context, DType q, int64_t num_items, int64_t Dv, const ContextSplits& splits,
                  const SplitSpace& space, const TensorView& y) {
  if (splits.num == 1) return;
  std::byte *const sums = context.workspace.data() + space.sums, *const states =
                                                                     context.workspace.data() + space.states;
  launch(context, merge_program(q), "attention_merge", shape_of({blocks(num_items, 1)}, 128), sums, states,
         memory(y), gpu::AttentionMergeParams{narrow(Dv), splits.num});
}

}  // namespace sinter::kernels::cuda
