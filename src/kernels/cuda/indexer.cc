#include <algorithm>

#include "kernels/cuda/launch.h"
#include "kernels/gpu/indexer_params.h"

namespace sinter::kernels::cuda {
namespace {

using Problem = ops::IndexerProblem;

// The keys of this many bytes at a time: a prompt's tokens go in parts.
constexpr int64_t kMostKeyBytes = int64_t{256} << 20;

int64_t tokens_at_once(const Problem& p) {
  const int64_t most = std::max<int64_t>(1, kMostKeyBytes / (4 * p.max_context));
  return std::min({p.T, most, int64_t{65535}});
}

int64_t shared_bytes(const Problem& p) {
  return gpu::indexer_shared_bytes(narrow(p.heads), narrow(p.D), p.q == DType::kF32 ? 3 : 1);
}

Support supports(const ops::Problem& problem, const DeviceInfo& device) {
  const auto& p = std::get<Problem>(problem);
  return all_of({fits_32_bits({{"T", p.T}, {"the context", p.max_context}, {"heads x D", p.heads * p.D}}),
                 fits_shared(shared_bytes(p), device)});
}

GpuProgram program(const Problem& p) {
  return {"cuda/indexer.cu",
          {{"SINTER_D", std::to_string(p.D)},
           {"SINTER_Q", element_of(p.q)},
           {"SINTER_CACHE", element_of(p.cache)}}};
}

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<Problem>(problem);
  const auto& a = std::get<ops::IndexerArgs>(args);
  const gpu::IndexerParams params = {narrow(p.heads), narrow(p.P), narrow(p.topk), p.max_context,
                                     a.batch.page_table.stride(0)};
  std::byte* const keys = context.workspace.data();
  const int64_t step = tokens_at_once(p);
  for (int64_t t = 0; t < p.T; t += step) {
    const int64_t end = std::min(t + step, p.T);
    const TensorView positions = a.batch.positions.slice(0, t, end);
    const Dim3 grid = {blocks(p.max_context, gpu::kIndexerRows), blocks(end - t, 1)};
    cuda::launch(context, program(p), "indexer_scores", shape_of(grid, gpu::kIndexerThreads, shared_bytes(p)),
                 memory(a.q.slice(0, t, end)), memory(a.w.slice(0, t, end)), memory(a.k_cache),
                 memory(a.batch.page_table), memory(a.batch.seq_idx.slice(0, t, end)), memory(positions),
                 keys, params);
    cuda::launch(context, program(p), "indexer_topk", shape_of({blocks(end - t, 1)}, gpu::kTopkThreads), keys,
                 memory(positions), memory(a.indices.slice(0, t, end)), params);
  }
}

}  // namespace

extern const KernelInfo indexer = {
    .name = "cuda.indexer",
    .op = ops::Op::kIndexer,
    .processor = Processor::kGpu,
    .supports = supports,
    .workspace_bytes =
        [](const ops::Problem& problem, const Config&) {
          const auto& p = std::get<Problem>(problem);
          return static_cast<size_t>(tokens_at_once(p) * p.max_context * 4);
        },
    .programs = [](const ops::Problem& problem, const DeviceInfo&,
                   const Config&) { return std::vector{program(std::get<Problem>(problem))}; },
    .launch = launch,
};

}  // namespace sinter::kernels::cuda
