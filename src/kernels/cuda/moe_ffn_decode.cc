#include "kernels/cuda/moe_ffn_chain.h"
#include "kernels/cuda/token_counts.h"
#include "kernels/cuda/weight_rows.h"
#include "kernels/gpu/row_product_params.h"

namespace sinter::kernels::cuda {
namespace {

using Problem = ops::MoeFfnProblem;

// Slots that an expert has on average decide, not tokens.
int num_tiles_of(const Problem& p) { return row_tiles(p.T * p.A / p.E); }

MoeChain chain_of(const Problem& p) { return MoeChain(p, 8 * num_tiles_of(p)); }

Support supports(const ops::Problem& problem, const DeviceInfo& device) {
  const auto& p = std::get<Problem>(problem);
  if (p.T * p.A > kMostRowTokens * p.E && p.x == DType::kBF16 && has_tile_product(p.format) &&
      has_tile_product(p.format_down))
    return Support::no(
        fmt::format("for more than {} tokens an expert cuda.moe_ffn_prefill is faster", kMostRowTokens));
  return supports_chain(p, chain_of(p), device);
}

GpuProgram program(const Problem& p) {
  return {"cuda/moe_ffn_decode.cu",
          {{"SINTER_FORMAT", format_of(p.format)},
           {"SINTER_FORMAT_DOWN", format_of(p.format_down)},
           {"SINTER_X", element_of(p.x)},
           {"SINTER_TILES", std::to_string(num_tiles_of(p))}}};
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
  cuda::launch(context, program(p), "moe_gate_up_decode",
               shape_of({blocks(p.I, gpu::kRowsAtOnce), num_tile_blocks},
                        gpu::row_product_threads(p.H, lane_k(p.format))),
               memory(a.x), experts, slots, tiles, num_tiles, hidden, params);
  cuda::launch(context, program(p), "moe_down_decode",
               shape_of({blocks(p.H, gpu::kRowsAtOnce), num_tile_blocks},
                        gpu::row_product_threads(p.I, lane_k(p.format_down))),
               hidden, experts, slots, tiles, num_tiles, outputs, params);
  launch_combine(context, p, a, chain);
}

}  // namespace

extern const KernelInfo moe_ffn_decode = {
    .name = "cuda.moe_ffn_decode",
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
