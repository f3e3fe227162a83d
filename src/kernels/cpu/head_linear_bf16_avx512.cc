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

extern const KernelInfo head_linear_bf16_avx512 = {
    .name = "cpu.head_linear_bf16_avx512",
    .op = ops::Op::kHeadLinear,
    .supports =
        [](const ops::Problem& problem, const DeviceInfo& device) {
          return both(takes(std::get<ops::HeadLinearProblem>(problem)), needs_avx512(device));
        },
    .workspace_bytes = head_linear_workspace<RowMajor<Bf16Format>>,
    .launch = launch_head_linear<RowMajor<Bf16Format>>,
};

}  // namespace sinter::kernels::cpu
