// From tensors of a checkpoint to what the blocks compute with. Shapes come from the tensor plan, how a
// matrix is stored from the tensors themselves. Blocks ask by name; what is not in the plan cannot be asked
// for.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "checkpoint/checkpoint.h"
#include "dispatch/dispatch.h"
#include "models/blocks/linear.h"
#include "models/model.h"

namespace sinter::models {

// kv_b_proj [Q * (nope + Dv), C] taken apart for the absorbed form, in the type of activations.
struct SplitKvB {
  Buffer memory;    // on a GPU empty: the context has it
  TensorView w_uk;  // [Q, C, nope]: q_absorbed = w_uk q_nope
  TensorView w_uv;  // [Q, Dv, C]
};

// Formats of gate and up together, and of down.
std::pair<ops::WeightFormat, ops::WeightFormat> expert_formats(const ops::MoeWeights& experts);

class WeightLoader {
 public:
  // Throws Error(kFormat) when the checkpoint has no tensors.
  WeightLoader(const checkpoint::Checkpoint& checkpoint, dispatch::Context& context, const DecoderSpec& spec,
               const LoadProgress& progress);

  // How the product is going to be used: decides which kernels, and so which layout, come into question.
  struct LinearUse {
    std::optional<DType> y = std::nullopt;  // the type of activations
    bool into_residual = false;             // y f32, accumulated
    bool has_bias = false;                  // NAME.bias
  };
  Linear linear(const std::string& name, const LinearUse& use);
  Linear linear(const std::string& name) { return linear(name, LinearUse{}); }
  // [N] f32, where the context computes; tables too
  TensorView vector(const std::string& name);
  // [V, H] as stored: f32, f16 or bf16.
  TensorView table(const std::string& name);
  // The output matrix: lm_head, or the embedding where the two are one.
  Linear head();
  // All experts of a layer.
  ops::PackedWeights experts(const std::string& prefix, const MoeSpec& moe);
  SplitKvB split_kv_b(const std::string& name, const MlaSpec& mla);

  // At the end: broken if a tensor of the plan has not been asked for; waits until all are in place and says
  // where they are.
  void finish() const;

 private:
  const TensorSpec& planned(const std::string& name);
  Linear prepare(ops::Weight weight, const LinearUse& use, TensorView bias);
  void note_loaded(int64_t size_bytes);

  const checkpoint::Checkpoint& checkpoint_;
  dispatch::Context& context_;
  const DecoderSpec& spec_;
  const LoadProgress& progress_;
  DType act_;
  std::vector<TensorSpec> plan_;
  std::unordered_map<std::string_view, size_t> plan_idx_;  // name -> index; a view into plan_
  std::vector<bool> is_loaded_;
  int64_t done_bytes_ = 0, total_bytes_ = 0;
};

}  // namespace sinter::models
