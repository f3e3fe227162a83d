// The matrices of a plan in a checkpoint, where they lie.
#pragma once

#include "checkpoint/checkpoint.h"
#include "models/decoder_spec.h"
#include "ops/weights.h"

namespace sinter::workbench {

// Asked in plan order it looks up the experts of a layer once; they may be fused in the checkpoint.
class PlanWeights {
 public:
  PlanWeights(const checkpoint::Checkpoint& checkpoint, const models::DecoderSpec& spec)
      : checkpoint_(checkpoint), spec_(spec) {}

  // `tensor` is a linear of the plan. Throws as checkpoint::find_linear does.
  ops::Weight find(const models::TensorSpec& tensor);

 private:
  const checkpoint::Checkpoint& checkpoint_;
  const models::DecoderSpec& spec_;
  int layer_ = -1;
  ops::MoeWeights experts_;
};

}  // namespace sinter::workbench
