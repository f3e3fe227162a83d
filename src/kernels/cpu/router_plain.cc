#include <functional>
#include <limits>

#include "kernels/cpu/elements.h"
#include "kernels/cpu/rank_key.h"
#include "kernels/cpu/workspace_parts.h"
#include "kernels/kernel.h"

namespace sinter::kernels::cpu {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Per token, so that every worker has its own.
struct Parts {
  uint64_t* experts;  // [T, E] ranked by b
  uint64_t* groups;   // [T, num_groups]
};

Parts lay_out(const ops::RouterProblem& p, WorkspaceParts& parts) {
  return {parts.take<uint64_t>(p.T * p.E), parts.take<uint64_t>(p.T * p.num_groups)};
}

size_t workspace(const ops::Problem& problem, const Config&) {
  WorkspaceParts parts;
  lay_out(std::get<ops::RouterProblem>(problem), parts);
  return parts.size_bytes();
}

class Scores {
 public:
  Scores(const ops::RouterProblem& p, const float* logits) : p_(p), logits_(logits) {
    if (p.scoring != ops::RouterScoring::kSoftmax) return;
    max_ = *std::max_element(logits, logits + p.E);
    for (int64_t e = 0; e < p.E; ++e) sum_ += std::exp(logits[e] - max_);
  }
  float operator[](int64_t e) const {
    if (p_.scoring == ops::RouterScoring::kSoftmax) return std::exp(logits_[e] - max_) / sum_;
    return 1 / (1 + std::exp(-logits_[e]));
  }

 private:
  const ops::RouterProblem& p_;
  const float* logits_;
  float max_ = 0, sum_ = 0;
};

// Puts the experts of all but the best groups last.
void keep_best_groups(const ops::RouterProblem& p, uint64_t* experts, uint64_t* groups) {
  const int64_t size = p.E / p.num_groups;
  for (int64_t g = 0; g < p.num_groups; ++g) {
    float best = kMinusInfinity, second = kMinusInfinity;
    for (int64_t e = g * size; e < (g + 1) * size; ++e) {
      const float b = key_value(experts[e]);
      second = std::max(second, std::min(best, b));
      best = std::max(best, b);
    }
    groups[g] = rank_key(size > 1 ? best + second : best, static_cast<uint32_t>(g));
  }
  std::sort(groups, groups + p.num_groups, std::greater<>());
  for (int64_t rank = p.topk_groups; rank < p.num_groups; ++rank) {
    const int64_t g = key_position(groups[rank]);
    // Zero keys: under those of -infinity and NaN, which may still be chosen within the best groups.
    std::fill(experts + g * size, experts + (g + 1) * size, 0);
  }
}

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<ops::RouterProblem>(problem);
  const auto& a = std::get<ops::RouterArgs>(args);
  WorkspaceParts carved(context.workspace.data());
  const Parts parts = lay_out(p, carved);
  for_rows(context.pool, p.T, [&](int64_t t) {
    uint64_t* experts = parts.experts + t * p.E;
    const Scores scores(p, a.logits.row<float>(t));
    for (int64_t e = 0; e < p.E; ++e) {
      const float b = p.has_bias ? scores[e] + a.bias.data_as<float>()[e] : scores[e];
      experts[e] = rank_key(b, static_cast<uint32_t>(e));
    }
    if (p.num_groups > 1) keep_best_groups(p, experts, parts.groups + t * p.num_groups);
    std::partial_sort(experts, experts + p.A, experts + p.E, std::greater<>());

    int32_t* ids = a.ids.row<int32_t>(t);
    float* weights = a.weights.row<float>(t);
    float sum = 0;
    for (int64_t i = 0; i < p.A; ++i) {
      ids[i] = static_cast<int32_t>(key_position(experts[i]));
      weights[i] = scores[ids[i]];
      sum += weights[i];
    }
    for (int64_t i = 0; i < p.A; ++i) {
      if (p.normalize) weights[i] /= sum + 1e-20f;
      weights[i] *= p.scale;
    }
  });
}

}  // namespace

extern const KernelInfo router_plain = {
    .name = "cpu.router_plain",
    .op = ops::Op::kRouter,
    .is_oracle = true,
    .supports = [](const ops::Problem&, const DeviceInfo&) { return Support::yes(); },
    .workspace_bytes = workspace,
    .launch = launch,
};

}  // namespace sinter::kernels::cpu
