#include "kernels/cuda/moe_ffn_chain.h"

namespace sinter::kernels::cuda {

MoeChain::MoeChain(const ops::MoeFfnProblem& p, int tile_slots_of)
    : tile_slots(tile_slots_of), max_tiles(gpu::moe_max_tiles(p.T, p.A, p.E, tile_slots_of)) {
  const int64_t num_slots = p.T * p.A;
  int64_t at = 0;
  const auto take = [&at](int64_t part_bytes) {
    const int64_t begin = at;
    at += (part_bytes + 255) / 256 * 256;
    return begin;
  };
  slots = take(num_slots * 4);
  // As for the smallest tiles: the workspace must not shrink where the tiles grow with T.
  tiles = take(gpu::moe_max_tiles(p.T, p.A, p.E, 8) * static_cast<int64_t>(sizeof(gpu::MoeTile)));
  num_tiles = take(4);
  hidden = take(num_slots * p.I * sinter::size_bytes(p.x));
  outputs = take(num_slots * p.H * 4);
  size_bytes = at;
}

Support supports_chain(const ops::MoeFfnProblem& p, const MoeChain& chain, const DeviceInfo& device) {
  if (p.E > gpu::kMaxExperts)
    return Support::no(fmt::format("needs at most {} experts, here {}", gpu::kMaxExperts, p.E));
  return all_of({fits_32_bits({{"T x A", p.T * p.A}, {"H", p.H}, {"I", p.I}, {"T x H", p.T * p.H}}),
                 fits_grid("the tiles of slots", chain.max_tiles),
                 fits_shared(gpu::moe_sort_shared_bytes(narrow(p.E)), device)});
}

GpuProgram chain_program(const ops::MoeFfnProblem& p) {
  return {"cuda/moe_ffn_slots.cu", {{"SINTER_Y", element_of(p.y)}}};
}

gpu::MoeFfnParams chain_params(const ops::MoeFfnProblem& p, const ops::MoeFfnArgs& a, const MoeChain& chain) {
  return {narrow(p.T), narrow(p.H),      narrow(p.I),          narrow(p.E),
          narrow(p.A), chain.tile_slots, p.accumulate ? 1 : 0, a.x.stride(0)};
}

void launch_sort(LaunchContext& context, const ops::MoeFfnProblem& p, const ops::MoeFfnArgs& a,
                 const MoeChain& chain) {
  std::byte* workspace = context.workspace.data();
  launch(context, chain_program(p), "moe_sort_slots",
         shape_of({1}, gpu::kSortThreads, gpu::moe_sort_shared_bytes(narrow(p.E))), memory(a.ids),
         workspace + chain.slots, workspace + chain.tiles, workspace + chain.num_tiles,
         chain_params(p, a, chain));
}

void launch_combine(LaunchContext& context, const ops::MoeFfnProblem& p, const ops::MoeFfnArgs& a,
                    const MoeChain& chain) {
  const Dim3 grid = {static_cast<uint32_t>(p.T) * blocks(p.H, gpu::kCombineColumns)};
  launch(context, chain_program(p), "moe_combine", shape_of(grid, gpu::kCombineColumns), memory(a.ids),
         memory(a.weights), context.workspace.data() + chain.outputs, memory(a.y), chain_params(p, a, chain));
}

}  // namespace sinter::kernels::cuda
