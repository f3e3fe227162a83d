#include "kernels/cpu/vector_kernel.h"

// Each of these builds on the one before.
// clang-format off
SINTER_TARGET_BEGIN_AVX512
#include "kernels/cpu/simd_avx512.h"
#include "kernels/cpu/bf16_dot_avx512.h"
#include "kernels/cpu/nvfp4_lookup_avx512.h"
#include "kernels/cpu/row_major_simd.h"
#include "kernels/cpu/formats_avx512.h"
#include "kernels/cpu/linear_simd.h"
SINTER_TARGET_END
// clang-format on

namespace sinter::kernels::cpu {

extern const KernelInfo linear_nvfp4_inplace_avx512 = {
    .name = "cpu.linear_nvfp4_inplace_avx512",
    .op = ops::Op::kLinear,
    .layout = ops::WeightLayout::kInPlace,
    .supports =
        [](const ops::Problem& problem, const DeviceInfo& device) {
          return both(takes(std::get<ops::LinearProblem>(problem), ops::WeightFormat::kNvfp4),
                      needs_avx512(device));
        },
    .workspace_bytes = linear_workspace<RowMajor<Nvfp4Format>>,
    .launch = launch_linear<RowMajor<Nvfp4Format>>,
};

}  // namespace sinter::kernels::cpu
