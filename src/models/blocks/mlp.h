// The two kinds of feed-forward: dense, and a mixture of experts with a shared one. Both add to the residual.
#pragma once

#include <memory>
#include <optional>

#include "models/blocks/linear.h"
#include "models/weights/weight_loader.h"

namespace sinter::models {

// down( silu(gate x) * (up x) )
struct DenseMlp {
  DenseMlp(WeightLoader& loader, const std::string& prefix);
  // residual [T, H] f32 += mlp(x [T, H])
  void run(const Step& step, const TensorView& x, const TensorView& residual) const;

  Linear gate, up, down;
};

// Router in float32, routed experts, and the shared expert where there is one.
struct MoeMlp {
  MoeMlp(WeightLoader& loader, const std::string& prefix, const MoeSpec& moe);
  void run(const Step& step, const TensorView& x, const TensorView& residual) const;

  MoeSpec spec;
  Linear router;
  TensorView router_bias;  // [E] f32, or empty
  ops::PackedWeights experts;
  ops::WeightFormat format, format_down;
  std::optional<DenseMlp> shared;
};

}  // namespace sinter::models
