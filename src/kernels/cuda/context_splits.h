// How attention cuts a context into stretches that different blocks take, so that a few tokens fill a GPU.
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/gpu/attention_params.h"

namespace sinter::kernels::cuda {

// `num` stretches of `rows` rows each, a multiple of kContextStep; the last may be empty.
struct ContextSplits {
  int num = 1, rows = 1 << 30;
};

// For `num_blocks` blocks a stretch at one token: enough stretches for two blocks a multiprocessor, each of
// 256 rows or more. For up to 32 tokens it follows from the shape and the context alone, so that a token's
// sums are added in the same order whatever else is in the batch; more tokens fill a GPU without. num_sms 0,
// of a device that is only described: 132.
ContextSplits split_context(int64_t num_tokens, int64_t num_rows, int64_t num_blocks,
                            const DeviceInfo& device);

// As kept in a Config.
Config config_of(const ContextSplits& splits);
ContextSplits splits_of(const Config& config);

// Sums and states that stretches leave, for `num_items` results of `Dv` numbers; offsets in bytes.
struct SplitSpace {
  SplitSpace(int64_t num_items, int64_t Dv, const ContextSplits& splits);
  int64_t sums, states, size_bytes;
};

GpuProgram merge_program(DType q);
void launch_merge(LaunchContext& context, DType q, int64_t num_items, int64_t Dv, const ContextSplits& splits,
                  const SplitSpace& space, const TensorView& y);

}  // namespace sinter::kernels::cuda
