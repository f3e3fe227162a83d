#include "kernels/cpu/nvfp4_tile.h"
#include "kernels/cpu/vector_kernel.h"

// Each of these builds on the one before.
// clang-format off
SINTER_TARGET_BEGIN_AVX512_VNNI
#define SINTER_VECTORISED SINTER_VECTORISED_AVX512_VNNI
#include "kernels/cpu/simd_avx512.h"
#include "kernels/cpu/nvfp4_lookup_avx512.h"
#include "kernels/cpu/row_major_simd.h"
#include "kernels/cpu/nvfp4_int16_avx512.h"
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
  if (!fits_tiles(p.I, p.H) || !fits_tiles(p.H, p.I)) return Support::no("needs H and I in sixty-fours");
  if (device.cpu.avx512_bf16 && !device.cpu.slow_dpbf16)
    return Support::no("VDPBF16PS is as fast here, and exact");
  return needs_avx512_vnni(device);
}

}  // namespace

extern const KernelInfo moe_ffn_nvfp4_int16_avx512 = {
    .name = "cpu.moe_ffn_nvfp4_int16_avx512",
    .op = ops::Op::kMoeFfn,
    .layout = ops::WeightLayout::kCpuTile16,
    .supports = supports,
    .workspace_bytes = moe_ffn_workspace<Nvfp4Tile<Int16Halves>>,
    .packed_bytes = packed_tile_bytes,
    .pack = pack_tiles,
    .launch = launch_moe_ffn<Nvfp4Tile<Int16Halves>>,
};

}  // namespace sinter::kernels::cpu
