#include "kernels/cpu/vector_kernel.h"

// Each of these builds on the one before.
// clang-format off
SINTER_TARGET_BEGIN_AVX512
#include "kernels/cpu/simd_avx512.h"
#include "kernels/cpu/row_major_simd.h"
#include "kernels/cpu/formats_avx512.h"
#include "kernels/cpu/nvfp4_tile_avx512.h"
#include "kernels/cpu/linear_simd.h"
#include "kernels/cpu/moe_ffn_simd.h"
SINTER_TARGET_END
// clang-format on

namespace sinter::kernels::cpu {
namespace {

Support supports(const ops::Problem& problem, const DeviceInfo& device) {
  const auto& p = std::get<ops::MoeFfnProblem>(problem);
  if (Support taken = takes(p); !taken) return taken;
  if (!Nvfp4Tile::fits(p.I, p.H) || !Nvfp4Tile::fits(p.H, p.I))
    return Support::no("needs H and I in sixty-fours");
  return needs_avx512(device);
}

size_t packed_bytes(const ops::Weights& weights) {
  const auto& experts = std::get<ops::MoeWeights>(weights);
  const ops::Weight& gate = experts.gate.front();
  return experts.gate.size() * static_cast<size_t>(3 * Nvfp4Tile::matrix_bytes(gate.N, gate.K));
}

// Expert by expert: gate, up, down.
void pack(LaunchContext& context, const ops::Weights& weights, std::span<std::byte> out) {
  const auto& experts = std::get<ops::MoeWeights>(weights);
  context.pool.run([&](int worker_idx) {
    auto* to = reinterpret_cast<uint8_t*>(out.data());
    for (size_t e = 0; e < experts.gate.size(); ++e) {
      for (const ops::Weight* weight : {&experts.gate[e], &experts.up[e], &experts.down[e]}) {
        const auto [begin, end] = context.pool.part(worker_idx, weight->N / 16);
        Nvfp4Tile::pack(*weight, begin, end, to);
        to += Nvfp4Tile::matrix_bytes(weight->N, weight->K);
      }
    }
  });
}

}  // namespace

extern const KernelInfo moe_ffn_nvfp4_avx512 = {
    .name = "cpu.moe_ffn_nvfp4_avx512",
    .op = ops::Op::kMoeFfn,
    .layout = ops::WeightLayout::kCpuTile16,
    .supports = supports,
    .workspace_bytes = moe_ffn_workspace<Nvfp4Tile>,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .launch = launch_moe_ffn<Nvfp4Tile>,
};

}  // namespace sinter::kernels::cpu
