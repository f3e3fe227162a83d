#include "workbench/plan_weights.h"

#include <string>
#include <string_view>

#include "checkpoint/scheme.h"

namespace sinter::workbench {

ops::Weight PlanWeights::find(const models::TensorSpec& tensor) {
  if (tensor.expert < 0) return checkpoint::find_linear(checkpoint_, tensor.name, tensor.N, tensor.K);
  if (tensor.layer != layer_) {
    constexpr std::string_view kExperts = ".experts";
    const std::string prefix = tensor.name.substr(0, tensor.name.rfind(".experts.") + kExperts.size());
    experts_ = checkpoint::find_experts(checkpoint_, prefix, spec_.moe->E, spec_.moe->I, spec_.H);
    layer_ = tensor.layer;
  }
  const std::vector<ops::Weight>& matrices = tensor.name.ends_with("gate_proj") ? experts_.gate
                                             : tensor.name.ends_with("up_proj") ? experts_.up
                                                                                : experts_.down;
  return matrices.at(static_cast<size_t>(tensor.expert));
}

}  // namespace sinter::workbench
