// Tensors of a checkpoint that the model does not read. They are the only sign of a config.json that tells
// too little: fewer layers, no shared experts, a tied head. Such a model would compute, but wrongly.
#pragma once

#include <vector>

#include "checkpoint/checkpoint.h"
#include "models/decoder_spec.h"

namespace sinter::models {

// Throws Error(kFormat) naming the first tensor that is neither in the plan nor known to be idle: layers for
// multi-token prediction, scales of caches and activations, stored rotary frequencies, zero points of zero, a
// copy of the embedding where the head is tied to it. Reads headers, and the two matrices of that case.
void check_leftover_tensors(const checkpoint::Checkpoint& checkpoint, const DecoderSpec& spec,
                            const std::vector<TensorSpec>& plan);

}  // namespace sinter::models
