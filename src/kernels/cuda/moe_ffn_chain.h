// What the two regimes of moe_ffn share: slots sorted by expert before the products, sums over a token's
// experts after them.
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/gpu/moe_ffn_params.h"

namespace sinter::kernels::cuda {

// The workspace, every part aligned to 256 bytes.
struct MoeChain {
  MoeChain(const ops::MoeFfnProblem& p, int tile_slots);

  int tile_slots;
  int64_t max_tiles;
  int64_t slots, tiles, num_tiles, hidden, outputs, size_bytes;  // offsets in bytes, and their end
};

// What does not depend on the regime.
Support supports_chain(const ops::MoeFfnProblem& p, const MoeChain& chain, const DeviceInfo& device);
GpuProgram chain_program(const ops::MoeFfnProblem& p);
gpu::MoeFfnParams chain_params(const ops::MoeFfnProblem& p, const ops::MoeFfnArgs& a, const MoeChain& chain);
void launch_sort(LaunchContext& context, const ops::MoeFfnProblem& p, const ops::MoeFfnArgs& a,
                 const MoeChain& chain);
void launch_combine(LaunchContext& context, const ops::MoeFfnProblem& p, const ops::MoeFfnArgs& a,
                    const MoeChain& chain);

}  // namespace sinter::kernels::cuda
