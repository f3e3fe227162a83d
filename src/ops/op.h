// All ops: what is computed, never how. Problem holds the numbers, Args the tensors.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "ops/attention.h"
#include "ops/cache_write.h"
#include "ops/embedding.h"
#include "ops/indexer.h"
#include "ops/linear.h"
#include "ops/moe_ffn.h"
#include "ops/norm.h"
#include "ops/rope.h"
#include "ops/router.h"
#include "ops/sample.h"
#include "ops/silu_mul.h"

namespace sinter::ops {

// In the order of the variants below.
enum class Op : uint8_t {
  kEmbedding,
  kRmsNorm,
  kLayerNorm,
  kRope,
  kLinear,
  kHeadLinear,
  kSiluMul,
  kRouter,
  kMoeFfn,
  kMlaAttention,
  kGqaAttention,
  kIndexer,
  kCacheWrite,
  kSample,
};
inline constexpr int kNumOps = 14;

using Problem =
    std::variant<EmbeddingProblem, RmsNormProblem, LayerNormProblem, RopeProblem, LinearProblem,
                 HeadLinearProblem, SiluMulProblem, RouterProblem, MoeFfnProblem, MlaAttentionProblem,
                 GqaAttentionProblem, IndexerProblem, CacheWriteProblem, SampleProblem>;
using Args = std::variant<EmbeddingArgs, RmsNormArgs, LayerNormArgs, RopeArgs, LinearArgs, HeadLinearArgs,
                          SiluMulArgs, RouterArgs, MoeFfnArgs, MlaAttentionArgs, GqaAttentionArgs,
                          IndexerArgs, CacheWriteArgs, SampleArgs>;
static_assert(std::variant_size_v<Problem> == kNumOps && std::variant_size_v<Args> == kNumOps);

constexpr Op op_of(const Problem& problem) { return static_cast<Op>(problem.index()); }
std::string_view name(Op op);  // "moe_ffn"
// "linear T=1 N=6144 K=2048 nvfp4 bf16->f32": for messages, listings and look-up keys.
std::string describe(const Problem& problem);

// Every tensor of `args` against the numbers of `problem`; throws Error(kInternal) naming the first that
// differs. Called at the door (dispatch), so kernels need not.
void check_args(const Problem& problem, const Args& args);

}  // namespace sinter::ops
