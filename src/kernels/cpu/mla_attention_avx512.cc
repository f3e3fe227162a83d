#include "kernels/cpu/vector_kernel.h"

// Each of these builds on the one before.
// clang-format off
SINTER_TARGET_BEGIN_AVX512
#include "kernels/cpu/simd_avx512.h"
#include "kernels/cpu/bf16_dot_avx512.h"
#include "kernels/cpu/attention_simd.h"
#include "kernels/cpu/mla_attention_simd.h"
SINTER_TARGET_END
// clang-format on

namespace sinter::kernels::cpu {

extern const KernelInfo mla_attention_avx512 = {
    .name = "cpu.mla_attention_avx512",
    .op = ops::Op::kMlaAttention,
    .supports =
        [](const ops::Problem& problem, const DeviceInfo& device) {
          return both(takes(std::get<ops::MlaAttentionProblem>(problem)), needs_avx512(device));
        },
    .launch = launch_mla_attention,
};

}  // namespace sinter::kernels::cpu
