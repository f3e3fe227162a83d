// What a weight is, decided for each matrix from the types and shapes of its tensors, never from what
// config.json says of the model as a whole: checkpoints mix schemes, and their exclude lists lie.
//
//   tensors of X                                                        format
//   X.weight F32 | F16 | BF16 [N, K]                                    as stored
//   X.weight F8_E4M3 [N, K], X.weight_scale one number                  FP8 per tensor
//   X.weight F8_E4M3 [N, K], X.weight_scale_inv | weight_scale          FP8 blocks
//                            [ceil(N / 128), ceil(K / 128)]
//   X.weight U8 [N, K/2], X.weight_scale F8_E4M3 [N, K/16],             NVFP4 of ModelOpt
//            X.weight_scale_2 = amax / 2688, W4A4: X.input_scale
//   X.weight_packed U8 [N, K/2], X.weight_scale F8_E4M3 [N, K/16],      NVFP4 of compressed-tensors
//            X.weight_global_scale = 2688 / amax, W4A4: X.input_global_scale
//   X.weight | weight_packed U8 [N, K/2], X.weight_scale U8 | F8_E8M0   MXFP4
//            [N, K/32]
//
// Several tensors of one layer may differ in all of this, gate and up in their scales too.
#pragma once

#include <optional>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "ops/weights.h"

namespace sinter::checkpoint {

// The matrix [N, K] of module `prefix` ("model.layers.3.mlp.experts.0.gate_proj"), in place. Throws
// Error(kFormat) for missing tensors, wrong shapes, and scales of a tensor that are NaN, infinite or
// negative; Error(kUnsupported) for storage we cannot compute with. Block scales are not looked at: see
// check_scales.
ops::Weight find_linear(const Checkpoint& checkpoint, std::string_view prefix, int64_t N, int64_t K);

// Reads every block scale (an eighth of the bytes of an NVFP4 matrix); throws Error(kFormat) on NaN, infinite
// and negative ones.
void check_scales(const Checkpoint& checkpoint, const ops::Weight& weight);

// Both: what loading a model wants.
ops::Weight read_linear(const Checkpoint& checkpoint, std::string_view prefix, int64_t N, int64_t K);

// The E experts under `prefix` ("model.layers.3.mlp.experts"): one module each (PREFIX.7.gate_proj, up_proj,
// down_proj), or fused
//   PREFIX.gate_up_proj [E, 2*I, H], gate before up, PREFIX.down_proj [E, H, I]
// in F32, F16, BF16, as FP8 blocks (PREFIX.gate_up_proj_scale_inv, I a multiple of 128) or NVFP4
// (PREFIX.gate_up_proj_weight_scale, _weight_scale_2, _input_scale; the latter one number or [E]).
ops::MoeWeights find_experts(const Checkpoint& checkpoint, std::string_view prefix, int64_t E, int64_t I,
                             int64_t H);
ops::MoeWeights read_experts(const Checkpoint& checkpoint, std::string_view prefix, int64_t E, int64_t I,
                             int64_t H);

}  // namespace sinter::checkpoint
