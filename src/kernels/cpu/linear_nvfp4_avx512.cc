#include "kernels/cpu/vector_kernel.h"

// Each of these builds on the one before.
// clang-format off
SINTER_TARGET_BEGIN_AVX512
#include "kernels/cpu/simd_avx512.h"
#include "kernels/cpu/row_major_simd.h"
#include "kernels/cpu/formats_avx512.h"
#include "kernels/cpu/nvfp4_tile_avx512.h"
#include "kernels/cpu/linear_simd.h"
SINTER_TARGET_END
// clang-format on

namespace sinter::kernels::cpu {
namespace {

Support supports(const ops::Problem& problem, const DeviceInfo& device) {
  const auto& p = std::get<ops::LinearProblem>(problem);
  if (Support taken = takes(p, ops::WeightFormat::kNvfp4); !taken) return taken;
  if (!Nvfp4Tile::fits(p.N, p.K)) return Support::no("needs N in sixteens and K in sixty-fours");
  return needs_avx512(device);
}

size_t packed_bytes(const ops::Weights& weights) {
  const auto& weight = std::get<ops::Weight>(weights);
  return static_cast<size_t>(Nvfp4Tile::matrix_bytes(weight.N, weight.K));
}

void pack(LaunchContext& context, const ops::Weights& weights, std::span<std::byte> out) {
  const auto& weight = std::get<ops::Weight>(weights);
  context.pool.run([&](int worker_idx) {
    const auto [begin, end] = context.pool.part(worker_idx, weight.N / 16);
    Nvfp4Tile::pack(weight, begin, end, reinterpret_cast<uint8_t*>(out.data()));
  });
}

}  // namespace

extern const KernelInfo linear_nvfp4_avx512 = {
    .name = "cpu.linear_nvfp4_avx512",
    .op = ops::Op::kLinear,
    .layout = ops::WeightLayout::kCpuTile16,
    .supports = supports,
    .workspace_bytes = linear_workspace<Nvfp4Tile>,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .launch = launch_linear<Nvfp4Tile>,
};

}  // namespace sinter::kernels::cpu
