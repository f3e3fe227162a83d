#include "device/arch.h"

namespace sinter {
namespace {

// Numbers: CUDA programming guide, technical specifications per compute capability; a block may have what its
// multiprocessor has less the KiB that the driver keeps in each block's share. Instructions: what ptxas 13.0
// assembles for the target, which arch_test.cc asks it again where it is installed. On sm_12x clusters launch
// and share memory, but no copy is multicast in hardware.
constexpr Arch kArchs[] = {
    // name, capability, shared bytes of a block and an SM, registers, threads,
    //     FP8 convert, FP8 mma, FP4 convert, block-scaled mma, bulk copy, clusters, PDL, wgmma, tcgen05
    {"sm_80", 8, 0, 166912, 167936, 65536, 2048, 0, 0, 0, 0, 0, 0, 0, 0, 0},     // A100
    {"sm_86", 8, 6, 101376, 102400, 65536, 1536, 0, 0, 0, 0, 0, 0, 0, 0, 0},     // RTX 30, A10, A40
    {"sm_87", 8, 7, 166912, 167936, 65536, 1536, 0, 0, 0, 0, 0, 0, 0, 0, 0},     // Jetson Orin
    {"sm_89", 8, 9, 101376, 102400, 65536, 1536, 1, 1, 0, 0, 0, 0, 0, 0, 0},     // RTX 40, L4, L40
    {"sm_90a", 9, 0, 232448, 233472, 65536, 2048, 1, 1, 0, 0, 1, 1, 1, 1, 0},    // H100, H200
    {"sm_100a", 10, 0, 232448, 233472, 65536, 2048, 1, 1, 1, 0, 1, 1, 1, 0, 1},  // B200
    {"sm_103a", 10, 3, 232448, 233472, 65536, 2048, 1, 1, 1, 0, 1, 1, 1, 0, 1},  // B300
    {"sm_110a", 11, 0, 232448, 233472, 65536, 1536, 1, 1, 1, 0, 1, 1, 1, 0, 1},  // Jetson Thor
    {"sm_120a", 12, 0, 101376, 102400, 65536, 1536, 1, 1, 1, 1, 1, 1, 1, 0, 0},  // RTX 50, RTX PRO Blackwell
    {"sm_121a", 12, 1, 101376, 102400, 65536, 1536, 1, 1, 1, 1, 1, 1, 1, 0, 0},  // DGX Spark
};

constexpr ArchFeature kFeatures[] = {
    {"FP8_CONVERT", &Arch::has_fp8_convert},
    {"FP8_MMA", &Arch::has_fp8_mma},
    {"FP4_CONVERT", &Arch::has_fp4_convert},
    {"BLOCK_SCALED_MMA", &Arch::has_block_scaled_mma},
    {"BULK_COPY", &Arch::has_bulk_copy},
    {"CLUSTERS", &Arch::has_clusters},
    {"DEPENDENT_LAUNCH", &Arch::has_dependent_launch},
    {"WGMMA", &Arch::has_wgmma},
    {"TCGEN05", &Arch::has_tcgen05},
};

}  // namespace

std::span<const Arch> archs() { return kArchs; }
std::span<const ArchFeature> arch_features() { return kFeatures; }

const Arch* find_arch(std::string_view name) {
  for (const Arch& arch : kArchs)
    if (arch.name == name) return &arch;
  return nullptr;
}

// An `a` target runs on its own capability alone, and a Tegra does not promise to run its desktop sister's
// code: no row stands in for another.
const Arch* arch_of(int major, int minor) {
  for (const Arch& arch : kArchs)
    if (arch.major == major && arch.minor == minor) return &arch;
  return nullptr;
}

}  // namespace sinter
