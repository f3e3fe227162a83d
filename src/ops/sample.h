#pragma once

#include <cstdint>
#include <span>

#include "tensor/tensor_view.h"

namespace sinter::ops {

// How the next token of one sequence is drawn from its logits z. In this order:
//   penalties   over the tokens in `history`: z / r if z > 0 else z * r (repetition), then
//               z - frequency * count - presence for tokens generated or in the prompt
//   temperature z / temperature; 0: greedy, the largest z, ties to the lower id, and nothing below applies
//   top_k       the k largest; 0: all. Ties at the border keep the lower ids
//   top_p       the smallest set of the most probable whose mass reaches top_p; at least one
//   min_p       those with p >= min_p * largest p
//   draw        u * mass of what is left, walked in falling order of p (ties: lower id first),
//               u in [0, 1) from Philox4x32-10 with key = seed, counter = draw_idx
struct SampleParams {
  float temperature = 1;
  int32_t top_k = 0;
  float top_p = 1;
  float min_p = 0;
  float repetition_penalty = 1;
  float presence_penalty = 0;
  float frequency_penalty = 0;
  uint64_t seed = 0;
  bool operator==(const SampleParams&) const = default;
};

struct SampleProblem {
  int64_t B, V;
  bool operator==(const SampleProblem&) const = default;
};
struct SampleArgs {
  TensorView logits;                                  // [B, V] f32, unchanged
  std::span<const SampleParams> params;               // [B]
  std::span<const std::span<const int32_t>> history;  // [B] token ids of prompt and output
  std::span<const uint64_t> draw_idx;                 // [B] number of tokens drawn before
  TensorView ids;                                     // [B] i32
};

}  // namespace sinter::ops
