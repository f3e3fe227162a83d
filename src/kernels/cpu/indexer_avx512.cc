#include "kernels/cpu/vector_kernel.h"

// Each of these builds on the one before.
// clang-format off
SINTER_TARGET_BEGIN_AVX512
#include "kernels/cpu/simd_avx512.h"
#include "kernels/cpu/bf16_dot_avx512.h"
#include "kernels/cpu/indexer_simd.h"
SINTER_TARGET_END
// clang-format on

namespace sinter::kernels::cpu {

extern const KernelInfo indexer_avx512 = {
    .name = "cpu.indexer_avx512",
    .op = ops::Op::kIndexer,
    .supports =
        [](const ops::Problem& problem, const DeviceInfo& device) {
          return both(takes(std::get<ops::IndexerProblem>(problem)), needs_avx512(device));
        },
    .workspace_bytes = indexer_workspace,
    .launch = launch_indexer,
};

}  // namespace sinter::kernels::cpu
