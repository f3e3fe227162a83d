// ops::RouterProblem: a warp per token.
#include "gpu/router_params.h"
#include "gpu/warp.h"

namespace sinter::gpu {

// s of every expert of one token.
class RouterScores {
 public:
  SINTER_DEVICE RouterScores(const float* logits, const RouterParams& p) : logits_(logits), p_(p) {
    if (!p.is_softmax) return;
    float largest = -infinity();
    for (int e = lane_idx(); e < p.E; e += kWarp) largest = max_of(largest, logits[e]);
    largest_ = warp_max(largest);
    float sum = 0;
    for (int e = lane_idx(); e < p.E; e += kWarp) sum += expf(logits[e] - largest_);
    sum_ = warp_sum(sum);
  }
  SINTER_DEVICE float operator[](int e) const {
    if (p_.is_softmax) return expf(logits_[e] - largest_) / sum_;
    return 1 / (1 + expf(-logits_[e]));
  }

 private:
  const float* logits_;
  const RouterParams& p_;
  float largest_ = 0, sum_ = 0;
};

// Zeroes the keys of the experts outside the best groups: under those of -infinity and NaN, which may still
// be chosen within the best groups.
SINTER_DEVICE void keep_best_groups(U64* experts, U64* groups, const RouterParams& p) {
  const int size = p.E / p.num_groups;
  for (int g = lane_idx(); g < p.num_groups; g += kWarp) {
    float best = -infinity(), second = -infinity();
    for (int e = g * size; e < (g + 1) * size; ++e) {
      const float b = key_value(static_cast<U32>(experts[e] >> 32));
      second = max_of(second, min_of(best, b));
      best = max_of(best, b);
    }
    groups[g] = rank_key(size > 1 ? best + second : best, static_cast<U32>(g));
  }
  sync_warp();
  for (int g = lane_idx(); g < p.num_groups; g += kWarp) {
    int num_better = 0;
    for (int other = 0; other < p.num_groups; ++other) num_better += groups[other] > groups[g];
    if (num_better >= p.topk_groups)
      for (int e = g * size; e < (g + 1) * size; ++e) experts[e] = 0;
  }
  sync_warp();
}

// logits [T, E], bias [E] or null, ids [T, A], weights [T, A]
SINTER_KERNEL(kRouterTokens* kWarp)
router(const float* logits, const float* bias, int* ids, float* weights, RouterParams p) {
  SINTER_DYNAMIC_SHARED(shared);
  begin_kernel();
  const I64 t = static_cast<I64>(block_x()) * kRouterTokens + warp_idx();
  if (t >= p.T) return;
  U64* experts = reinterpret_cast<U64*>(shared) + warp_idx() * (p.E + kMaxGroups);
  const RouterScores scores(logits + t * p.E, p);
  for (int e = lane_idx(); e < p.E; e += kWarp)
    experts[e] = rank_key(bias == nullptr ? scores[e] : scores[e] + bias[e], static_cast<U32>(e));
  sync_warp();
  if (p.num_groups > 1) keep_best_groups(experts, experts + p.E, p);

  float sum = 0;
  for (int a = 0; a < p.A; ++a) {
    U64 best = 0;
    for (int e = lane_idx(); e < p.E; e += kWarp) best = max_of(best, experts[e]);
    best = warp_max(best);
    const int e = key_position(best);
    const float weight = scores[e];
    sum += weight;
    if (lane_idx() == 0) {
      experts[e] = 0;
      ids[t * p.A + a] = e;
      weights[t * p.A + a] = weight;
    }
    sync_warp();
  }
  for (int a = lane_idx(); a < p.A; a += kWarp) {
    float weight = weights[t * p.A + a];
    if (p.normalize) weight /= sum + 1e-20f;
    weights[t * p.A + a] = weight * p.scale;
  }
}

}  // namespace sinter::gpu
