#include "kernels/cuda/context_splits.h"

namespace sinter::kernels::cuda {
namespace {

using Problem = ops::GqaAttentionProblem;

int num_parts(const Problem& p) { return p.q == DType::kF32 ? 3 : 1; }

// A block's warps along the context where there are few tokens, along the tokens where there are many.
int row_warps(const Problem& p) { return p.index_topk == 0 && p.T > 64 ? 4 : 1; }

int64_t shared_bytes(const Problem& p) {
  return gpu::gqa_shared_bytes(narrow(p.D), narrow(p.Dv), row_warps(p), num_parts(p));
}

uint32_t head_blocks(const Problem& p) {
  const int tile_heads = gpu::gqa_tile_heads(narrow(p.Q), narrow(p.G));
  return static_cast<uint32_t>(p.G) * blocks(p.Q / p.G, tile_heads);
}

Support supports(const ops::Problem& problem, const DeviceInfo& device) {
  const auto& p = std::get<Problem>(problem);
  constexpr int64_t kMostDims = 256;
  for (const int64_t dims : {p.D, p.Dv})
    if (dims > kMostDims)
      return Support::no(fmt::format("needs heads of at most {} dimensions, here {}", kMostDims, dims));
  return all_of({fits_32_bits({{"T x Q", p.T * p.Q}, {"the context", p.max_context}}),
                 fits_grid("the heads", head_blocks(p)), fits_shared(shared_bytes(p), device)});
}

std::vector<Config> configs(const ops::Problem& problem, const DeviceInfo& device) {
  const auto& p = std::get<Problem>(problem);
  const int64_t num_rows = p.index_topk > 0 ? p.index_topk : p.max_context;
  return {config_of(split_context(p.T, num_rows, head_blocks(p), device))};
}

GpuProgram program(const Problem& p) {
  return {"cuda/gqa_attention.cu",
          {{"SINTER_D", std::to_string(p.D)},
           {"SINTER_DV", std::to_string(p.Dv)},
           {"SINTER_Q", element_of(p.q)},
           {"SINTER_CACHE", element_of(p.cache)}}};
}

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args,
            const Config& config) {
  const auto& p = std::get<Problem>(problem);
  const auto& a = std::get<ops::GqaAttentionArgs>(args);
  const ContextSplits splits = splits_of(config);
  const SplitSpace space(p.T * p.Q, p.Dv, splits);
  const int Q = narrow(p.Q), G = narrow(p.G);
  const gpu::GqaAttentionParams params = {.T = narrow(p.T),
                                          .Q = Q,
                                          .G = G,
                                          .P = narrow(p.P),
                                          .index_topk = narrow(p.index_topk),
                                          .scale = p.scale,
                                          .tile_tokens = gpu::gqa_tile_tokens(Q, G, narrow(p.index_topk)),
                                          .tile_heads = gpu::gqa_tile_heads(Q, G),
                                          .row_warps = row_warps(p),
                                          .num_splits = splits.num,
                                          .split_rows = splits.rows,
                                          .q_stride_token = a.q.stride(0),
                                          .q_stride_head = a.q.stride(1),
                                          .page_table_stride = a.batch.page_table.stride(0)};
  const Dim3 grid = {blocks(p.T, params.tile_tokens * params.row_warps), head_blocks(p),
                     static_cast<uint32_t>(splits.num)};
  std::byte *const sums = context.workspace.data() + space.sums, *const states =
                                                                     context.workspace.data() + space.states;
  cuda::launch(context, program(p), "gqa_attention", shape_of(grid, gpu::kGqaThreads, shared_bytes(p)),
               memory(a.q), memory(a.k_cache), memory(a.v_cache), memory(a.batch.page_table),
               memory(a.batch.seq_idx), memory(a.batch.positions), memory(a.indices), memory(a.y), sums,
               states, params);
  launch_merge(context, p.q, p.T * p.Q, p.Dv, splits, space, a.y);
}

}  // namespace

extern const KernelInfo gqa_attention = {
    .name = "cuda.gqa_attention",
    .op = ops::Op::kGqaAttention,
    .processor = Processor::kGpu,
    .supports = supports,
    .configs = configs,
    .workspace_bytes =
        [](const ops::Problem& problem, const Config& config) {
          const auto& p = std::get<Problem>(problem);
          return static_cast<size_t>(SplitSpace(p.T * p.Q, p.Dv, splits_of(config)).size_bytes);
        },
    .programs =
        [](const ops::Problem& problem, const DeviceInfo&, const Config& config) {
          const auto& p = std::get<Problem>(problem);
          std::vector<GpuProgram> programs = {program(p)};
          if (splits_of(config).num > 1) programs.push_back(merge_program(p.q));
          return programs;
        },
    .launch = launch,
};

}  // namespace sinter::kernels::cuda
