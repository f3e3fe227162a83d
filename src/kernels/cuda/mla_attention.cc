#include "kernels/cuda/context_splits.h"

namespace sinter::kernels::cuda {
namespace {

using Problem = ops::MlaAttentionProblem;

int num_parts(const Problem& p) { return p.q == DType::kF32 ? 3 : 1; }

// Tiles of 16 heads of a block share the rows they read through L1.
int num_groups(const Problem& p) { return p.Q > 16 && p.q == DType::kBF16 ? 2 : 1; }

int64_t shared_bytes(const Problem& p) {
  return gpu::mla_shared_bytes(narrow(p.C), narrow(p.R), num_groups(p), num_parts(p));
}

Support supports(const ops::Problem& problem, const DeviceInfo& device) {
  const auto& p = std::get<Problem>(problem);
  constexpr int64_t kMostLatent = 512;
  if (p.C > kMostLatent)
    return Support::no(fmt::format("needs at most {} latent dimensions, here {}", kMostLatent, p.C));
  return all_of({fits_32_bits({{"T x Q", p.T * p.Q}, {"the context", p.max_context}}),
                 fits_grid("the heads", blocks(p.Q, 16 * num_groups(p))),
                 fits_shared(shared_bytes(p), device)});
}

std::vector<Config> configs(const ops::Problem& problem, const DeviceInfo& device) {
  const auto& p = std::get<Problem>(problem);
  const int64_t num_rows = p.index_topk > 0 ? p.index_topk : p.max_context;
  return {config_of(split_context(p.T, num_rows, blocks(p.Q, 16 * num_groups(p)), device))};
}

GpuProgram program(const Problem& p) {
  return {"cuda/mla_attention.cu",
          {{"SINTER_C", std::to_string(p.C)},
           {"SINTER_R", std::to_string(p.R)},
           {"SINTER_Q", element_of(p.q)},
           {"SINTER_CACHE", element_of(p.cache)},
           {"SINTER_GROUPS", std::to_string(num_groups(p))}}};
}

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args,
            const Config& config) {
  const auto& p = std::get<Problem>(problem);
  const auto& a = std::get<ops::MlaAttentionArgs>(args);
  const ContextSplits splits = splits_of(config);
  const SplitSpace space(p.T * p.Q, p.C, splits);
  const gpu::MlaAttentionParams params = {.T = narrow(p.T),
                                          .Q = narrow(p.Q),
                                          .P = narrow(p.P),
                                          .index_topk = narrow(p.index_topk),
                                          .scale = p.scale,
                                          .num_splits = splits.num,
                                          .split_rows = splits.rows,
                                          .latent_stride_token = a.q_latent.stride(0),
                                          .latent_stride_head = a.q_latent.stride(1),
                                          .pe_stride_token = a.q_pe.stride(0),
                                          .pe_stride_head = a.q_pe.stride(1),
                                          .page_table_stride = a.batch.page_table.stride(0)};
  const Dim3 grid = {blocks(p.T, 1), blocks(p.Q, 16 * num_groups(p)), static_cast<uint32_t>(splits.num)};
  std::byte *const sums = context.workspace.data() + space.sums, *const states =
                                                                     context.workspace.data() + space.states;
  cuda::launch(context, program(p), "mla_attention", shape_of(grid, 128 * num_groups(p), shared_bytes(p)),
               memory(a.q_latent), memory(a.q_pe), memory(a.cache), memory(a.batch.page_table),
               memory(a.batch.seq_idx), memory(a.batch.positions), memory(a.indices), memory(a.y), sums,
               states, params);
  launch_merge(context, p.q, p.T * p.Q, p.C, splits, space, a.y);
}

}  // namespace

extern const KernelInfo mla_attention = {
    .name = "cuda.mla_attention",
    .op = ops::Op::kMlaAttention,
    .processor = Processor::kGpu,
    .supports = supports,
    .configs = configs,
    .workspace_bytes =
        [](const ops::Problem& problem, const Config& config) {
          const auto& p = std::get<Problem>(problem);
          return static_cast<size_t>(SplitSpace(p.T * p.Q, p.C, splits_of(config)).size_bytes);
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
