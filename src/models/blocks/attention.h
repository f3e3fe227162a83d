// The two kinds of attention. Both read the normed hidden state, write their caches and add to the residual.
#pragma once

#include <optional>

#include "models/blocks/linear.h"
#include "models/weights/weight_loader.h"

namespace sinter::models {

// Rope as the model has it; one table for all layers.
class Rope {
 public:
  Rope(const RopeSpec& spec, dispatch::Context& context)
      : inv_freq_(spec.inv_freq()), is_interleaved_(spec.interleaved), scale_(spec.cos_sin_scale()) {
    table_ = context.upload(TensorView(static_cast<const void*>(inv_freq_.data()), DType::kF32,
                                       {static_cast<int64_t>(inv_freq_.size())}));
  }
  Rope(const Rope&) = delete;  // the table may point to the numbers
  Rope& operator=(const Rope&) = delete;

  int64_t R() const { return static_cast<int64_t>(2 * inv_freq_.size()); }
  // x [T, N, R], in place; pairs as the model's attention has them, or as said.
  void run(const Step& step, const TensorView& x) const { run(step, x, is_interleaved_); }
  void run(const Step& step, const TensorView& x, bool is_interleaved) const {
    step.rope(x, table_, is_interleaved, scale_);
  }

 private:
  std::vector<float> inv_freq_;
  TensorView table_;  // [R/2] f32
  bool is_interleaved_;
  float scale_;
};

class Attention {
 public:
  virtual ~Attention() = default;
  // residual [T, H] f32 += attention(x [T, H])
  virtual void run(Step& step, const Rope& rope, const TensorView& x, const TensorView& residual) const = 0;
};

std::unique_ptr<Attention> make_mla(WeightLoader& loader, const std::string& prefix, const MlaSpec& spec,
                                    int layer, double norm_eps);
std::unique_ptr<Attention> make_gqa(WeightLoader& loader, const std::string& prefix, const GqaSpec& spec,
                                    double norm_eps);

}  // namespace sinter::models
