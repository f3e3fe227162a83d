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
SINTER_TARGET_END
// clang-format on

namespace sinter::kernels::cpu {
namespace {

Support supports(const ops::Problem& problem, const DeviceInfo& device) {
  const auto& p = std::get<ops::LinearProblem>(problem);
  if (Support taken = takes(p, ops::WeightFormat::kNvfp4); !taken) return taken;
  if (!fits_tiles(p.N, p.K)) return Support::no("needs N in sixteens and K in sixty-fours");
  if (p.y != DType::kBF16) return Support::no("its error of 2e-5 is hidden by a bf16 result only");
  if (device.cpu.avx512_bf16 && !device.cpu.slow_dpbf16)
    return Support::no("VDPBF16PS is as fast here, and exact");
  return needs_avx512_vnni(device);
}

}  // namespace

extern const KernelInfo linear_nvfp4_int16_avx512 = {
    .name = "cpu.linear_nvfp4_int16_avx512",
    .op = ops::Op::kLinear,
    .layout = ops::WeightLayout::kCpuTile16,
    .supports = supports,
    .workspace_bytes = linear_workspace<Nvfp4Tile<Int16Halves>>,
    .packed_bytes = packed_tile_bytes,
    .pack = pack_tiles,
    .launch = launch_linear<Nvfp4Tile<Int16Halves>>,
};

}  // namespace sinter::kernels::cpu
