#include "kernels/cuda/moe_ffn_chain.h"
#include "kernels/cuda/token_counts.h"
#include "kernels/cuda/weight_rows.h"
#include "kernels/gpu/tile_product_params.h"

namespace sinter::kernels::cuda {
namespace {

using Problem = ops::MoeFfnProblem;

int columns_of(const Problem& p) { return tile_columns(p.T * p.A / p.E); }

MoeChain chain_of(const Problem& p) { return MoeChain(p, columns_of(p)); }

Support supports(const ops::Problem& problem, const DeviceInfo& device) {
  const auto& p = std::get<Problem>(problem);
  if (p.x != DType::kBF16) return Support::no("needs bf16 activations, these are f32");
  for (const ops::WeightFormat format : {p.format, p.format_down})
    if (!has_tile_product(format))
      return Support::no(fmt::format("needs bf16, FP8, NVFP4 or MXFP4 weights, these are {}", name(format)));
  return all_of(
      {supports_chain(p, chain_of(p), device), fits_shared(gpu::tile_shared_bytes(columns_of(p)), device)});
}

GpuProgram program(const Problem& p) {
  return {"cuda/moe_ffn_prefill.cu",
          {{"SINTER_FORMAT", format_of(p.format)},
           {"SINTER_FORMAT_DOWN", format_of(p.format_down)},
           {"SINTER_COLUMNS", std::to_string(columns_of(p))}}};
}

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<Problem>(problem);
  const auto& a = std::get<ops::MoeFfnArgs>(args);
  const MoeChain chain = chain_of(p);
  launch_sort(context, p, a, chain);
  std::byte* workspace = context.workspace.data();
  std::byte *const slots = workspace + chain.slots, *const tiles = workspace + chain.tiles,
                   *const num_tiles = workspace + chain.num_tiles, *const hidden = workspace + chain.hidden,
                   *const outputs = workspace + chain.outputs, *const experts = packed_experts(*a.experts);
  const gpu::MoeFfnParams params = chain_params(p, a, chain);
  const auto num_tile_blocks = static_cast<uint32_t>(chain.max_tiles);
  const int64_t shared_bytes = gpu::tile_shared_bytes(columns_of(p));
  cuda::launch(context, program(p), "moe_gate_up_prefill",
               shape_of({blocks(p.I, gpu::kTileRows / 2), num_tile_blocks}, gpu::kTileThreads, shared_bytes),
               memory(a.x), experts, slots, tiles, num_tiles, hidden, params);
  cuda::launch(context, program(p), "moe_down_prefill",
               shape_of({blocks(p.H, gpu::kTileRows), num_tile_blocks}, gpu::kTileThreads, shared_bytes),
               hidden, experts, slots, tiles, num_tiles, outputs, params);
  launch_combine(context, p, a, chain);
}

}  // namespace

extern const KernelInfo moe_ffn_prefill = {
    .name = "cuda.moe_ffn_prefill",
    .op = ops::Op::kMoeFfn,
    .processor = Processor::kGpu,
    .layout = ops::WeightLayout::kGpuRows,
    .supports = supports,
    .workspace_bytes =
        [](const ops::Problem& problem, const Config&) {
          return static_cast<size_t>(chain_of(std::get<Problem>(problem)).size_bytes);
        },
    .packed_bytes = packed_row_bytes,
    .pack = pack_rows,
    .programs =
        [](const ops::Problem& problem, const DeviceInfo&, const Config&) {
          const auto& p = std::get<Problem>(problem);
          return std::vector{chain_program(p), program(p)};
        },
    .launch = launch,
};

}  // namespace sinter::kernels::cuda
