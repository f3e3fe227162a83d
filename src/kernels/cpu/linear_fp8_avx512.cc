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
namespace {

bool is_per_tile(const ops::Problem& problem) {
  return std::get<ops::LinearProblem>(problem).format == ops::WeightFormat::kFp8Block;
}

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args,
            const Config& config) {
  (is_per_tile(problem) ? launch_linear<RowMajor<Fp8Format<true>>>
                        : launch_linear<RowMajor<Fp8Format<false>>>)(context, problem, args, config);
}

}  // namespace

extern const KernelInfo linear_fp8_avx512 = {
    .name = "cpu.linear_fp8_avx512",
    .op = ops::Op::kLinear,
    .layout = ops::WeightLayout::kInPlace,
    .supports =
        [](const ops::Problem& problem, const DeviceInfo& device) {
          const auto format =
              is_per_tile(problem) ? ops::WeightFormat::kFp8Block : ops::WeightFormat::kFp8Tensor;
          return both(takes(std::get<ops::LinearProblem>(problem), format), needs_avx512(device));
        },
    .workspace_bytes = linear_workspace<RowMajor<Fp8Format<true>>>,
    .launch = launch,
};

}  // namespace sinter::kernels::cpu
