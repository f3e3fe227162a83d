// Every kernel, in order of preference within an op: the first row that can run a problem is taken.
// A row X(folder, stem) is the KernelInfo that src/kernels/<folder>/<stem>.cc defines.
#include "kernels/kernel.h"

// clang-format off
#define SINTER_KERNELS(X)              \
  X(cuda, embedding)                   \
  X(cpu, embedding_plain)              \
  X(cuda, rms_norm)                    \
  X(cpu, rms_norm_plain)               \
  X(cuda, layer_norm)                  \
  X(cpu, layer_norm_plain)             \
  X(cuda, rope)                        \
  X(cpu, rope_plain)                   \
  X(cuda, linear_decode)               \
  X(cuda, linear_prefill)              \
  X(cpu, linear_bf16_avx512)           \
  X(cpu, linear_nvfp4_int16_avx512)    \
  X(cpu, linear_nvfp4_avx512)          \
  X(cpu, linear_nvfp4_inplace_avx512)  \
  X(cpu, linear_fp8_avx512)            \
  X(cpu, linear_bf16_avx2)             \
  X(cpu, linear_nvfp4_avx2)            \
  X(cpu, linear_fp8_avx2)              \
  X(cpu, linear_plain)                 \
  X(cuda, head_linear_decode)          \
  X(cuda, head_linear_prefill)         \
  X(cpu, head_linear_bf16_avx512)      \
  X(cpu, head_linear_bf16_avx2)        \
  X(cpu, head_linear_plain)            \
  X(cuda, silu_mul)                    \
  X(cpu, silu_mul_plain)               \
  X(cuda, router)                      \
  X(cpu, router_plain)                 \
  X(cuda, moe_ffn_decode)              \
  X(cuda, moe_ffn_prefill)             \
  X(cpu, moe_ffn_nvfp4_int16_avx512)   \
  X(cpu, moe_ffn_nvfp4_avx512)         \
  X(cpu, moe_ffn_nvfp4_inplace_avx512) \
  X(cpu, moe_ffn_nvfp4_avx2)           \
  X(cpu, moe_ffn_plain)                \
  X(cuda, mla_attention)               \
  X(cpu, mla_attention_avx512)         \
  X(cpu, mla_attention_avx2)           \
  X(cpu, mla_attention_plain)          \
  X(cuda, gqa_attention)               \
  X(cpu, gqa_attention_avx512)         \
  X(cpu, gqa_attention_avx2)           \
  X(cpu, gqa_attention_plain)          \
  X(cuda, indexer)                     \
  X(cpu, indexer_avx512)               \
  X(cpu, indexer_avx2)                 \
  X(cpu, indexer_plain)                \
  X(cuda, cache_write)                 \
  X(cpu, cache_write_plain)            \
  X(cuda, sample)                      \
  X(cpu, sample_plain)
// clang-format on

#define SINTER_DECLARE(folder, stem)  \
  namespace sinter::kernels::folder { \
  extern const KernelInfo stem;       \
  }
SINTER_KERNELS(SINTER_DECLARE)
#undef SINTER_DECLARE

namespace sinter::kernels {
namespace {

#define SINTER_ADDRESS(folder, stem) &folder::stem,
constexpr const KernelInfo* kRegistry[] = {SINTER_KERNELS(SINTER_ADDRESS)};
#undef SINTER_ADDRESS

}  // namespace

std::span<const KernelInfo* const> registry() { return kRegistry; }

const KernelInfo* find_kernel(std::string_view name) {
  for (const KernelInfo* kernel : kRegistry)
    if (kernel->name == name) return kernel;
  return nullptr;
}

}  // namespace sinter::kernels
