// What the steps of a model ask of the ops, known without running one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/model.h"
#include "ops/op.h"
#include "workbench/inventory.h"

namespace sinter::workbench {

// What a step asks of an op, under a name that says where in the model.
struct ModelProblem {
  std::string where;  // "routed experts", "q_b_proj"
  ops::Problem problem;
};

// The distinct problems of a step of T tokens of one sequence, all of whose logits are wanted, bf16
// activations.
std::vector<ModelProblem> model_problems(const models::DecoderSpec& spec, const Inventory& inventory,
                                         int64_t T, int64_t context);

// Those of steps of 1, 2, 4 ... `chunk` tokens at every power of two of context up to `context`: what to
// compile for.
std::vector<ops::Problem> run_problems(const models::DecoderSpec& spec, const Inventory& inventory,
                                       int64_t chunk, int64_t context);

}  // namespace sinter::workbench
