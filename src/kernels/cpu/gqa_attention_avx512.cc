#include "kernels/cpu/vector_kernel.h"

// Each of these builds on the one before.
// clang-format off
SINTER_TARGET_BEGIN_AVX512
#include "kernels/cpu/simd_avx512.h"
#include "kernels/cpu/bf16_dot_avx512.h"
#include "kernels/cpu/attention_simd.h"
#include "kernels/cpu/gqa_attention_simd.h"
SINTER_TARGET_END
// clang-format on

namespace sinter::kernels::cpu {

extern const KernelInfo gqa_attention_avx512 = {
    .name = "cpu.gqa_attention_avx512",
    .op = ops::Op::kGqaAttention,
    .supports =
        [](const ops::Problem& problem, const DeviceInfo& device) {
          return both(takes(std::get<ops::GqaAttentionProblem>(problem)), needs_avx512(device));
        },
    .launch = launch_gqa_attention,
};

}  // namespace sinter::kernels::cpu
