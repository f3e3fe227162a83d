#pragma once

#include "tensor/tensor_view.h"

namespace sinter::ops {

enum class RouterScoring : uint8_t { kSigmoid, kSoftmax };

// Chooses A of E experts per token from float32 logits z.
//   s = sigmoid(z) or softmax(z);  b = s + bias (choice only)
//   groups > 1: a group's value is the sum of its two largest b; outside the topk_groups best groups b = -inf
//   ids = the A largest b, ties to the lower expert; weights = s[ids] (not b),
//   divided by their sum (+ 1e-20) when `normalize`, then times `scale`.
// ids of a token are ordered by falling b.
struct RouterProblem {
  int64_t T, E, A;
  RouterScoring scoring = RouterScoring::kSigmoid;
  int64_t num_groups = 1, topk_groups = 1;
  bool normalize = true;
  float scale = 1;
  bool has_bias = false;
  bool operator==(const RouterProblem&) const = default;
};
struct RouterArgs {
  TensorView logits;   // [T, E] f32
  TensorView bias;     // [E] f32, or empty
  TensorView ids;      // [T, A] i32
  TensorView weights;  // [T, A] f32
};

}  // namespace sinter::ops
