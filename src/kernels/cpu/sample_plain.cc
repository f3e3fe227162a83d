#include <functional>

#include "kernels/cpu/elements.h"
#include "kernels/cpu/philox.h"
#include "kernels/cpu/rank_key.h"
#include "kernels/cpu/workspace_parts.h"
#include "kernels/kernel.h"

namespace sinter::kernels::cpu {
namespace {

struct Parts {
  uint64_t* keys;   // [B, V]
  int32_t* counts;  // [B, V] of tokens in the history
};

Parts lay_out(const ops::SampleProblem& p, WorkspaceParts& parts) {
  return {parts.take<uint64_t>(p.B * p.V), parts.take<int32_t>(p.B * p.V)};
}

size_t workspace(const ops::Problem& problem, const Config&) {
  WorkspaceParts parts;
  lay_out(std::get<ops::SampleProblem>(problem), parts);
  return parts.size_bytes();
}

bool has_penalties(const ops::SampleParams& params) {
  return params.repetition_penalty != 1 || params.presence_penalty != 0 || params.frequency_penalty != 0;
}

float penalize(const ops::SampleParams& params, float z, int32_t count) {
  if (count == 0) return z;
  z = z > 0 ? z / params.repetition_penalty : z * params.repetition_penalty;
  return z - params.frequency_penalty * static_cast<float>(count) - params.presence_penalty;
}

// Candidates in falling order, sorted only as far as they are looked at: a draw rarely goes deep, and the
// vocabulary is large.
class FallingOrder {
 public:
  FallingOrder(uint64_t* keys, int64_t count) : keys_(keys), count_(count) {}

  uint64_t operator[](int64_t rank) {
    while (rank >= num_sorted_) {
      const int64_t wanted = std::min(count_, std::max<int64_t>(64, num_sorted_ * 8));
      std::nth_element(keys_ + num_sorted_, keys_ + wanted - 1, keys_ + count_, std::greater<>());
      std::sort(keys_ + num_sorted_, keys_ + wanted, std::greater<>());
      num_sorted_ = wanted;
    }
    return keys_[rank];
  }

 private:
  uint64_t* keys_;
  int64_t count_;
  int64_t num_sorted_ = 0;
};

int32_t draw(const ops::SampleParams& params, uint64_t draw_idx, uint64_t* keys, int64_t V) {
  int64_t count = params.top_k > 0 ? std::min<int64_t>(params.top_k, V) : V;
  if (count < V) std::nth_element(keys, keys + count - 1, keys + V, std::greater<>());
  FallingOrder order(keys, count);
  const float largest = key_value(order[0]);
  // Relative to the most probable one. Equal values first: infinities would give NaN.
  const auto probability = [&](uint64_t key) {
    const float z = key_value(key);
    return z == largest ? 1.0 : static_cast<double>(std::exp(z - largest));
  };

  if (params.top_p < 1) {
    double total = 0;
    for (int64_t i = 0; i < count; ++i) total += probability(keys[i]);
    double mass = 0;
    int64_t kept = 0;
    do mass += probability(order[kept++]);
    while (kept < count && mass < params.top_p * total);
    count = kept;
  }
  if (params.min_p > 0) {
    int64_t kept = 1;
    while (kept < count && probability(order[kept]) >= static_cast<double>(params.min_p)) ++kept;
    count = kept;
  }
  double total = 0;
  for (int64_t i = 0; i < count; ++i) total += probability(keys[i]);
  const double target = philox_uniform(params.seed, draw_idx) * total;
  double mass = 0;
  for (int64_t rank = 0; rank < count; ++rank) {
    mass += probability(order[rank]);
    if (target < mass) return static_cast<int32_t>(key_position(keys[rank]));
  }
  // Rounding kept the walk just under the total.
  return static_cast<int32_t>(key_position(order[count - 1]));
}

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<ops::SampleProblem>(problem);
  const auto& a = std::get<ops::SampleArgs>(args);
  WorkspaceParts carved(context.workspace.data());
  const Parts parts = lay_out(p, carved);
  for_rows(context.pool, p.B, [&](int64_t b) {
    const auto idx = static_cast<size_t>(b);
    const ops::SampleParams& params = a.params[idx];
    const float* logits = a.logits.row<float>(b);
    uint64_t* keys = parts.keys + b * p.V;
    int32_t* counts = nullptr;
    if (has_penalties(params)) {
      counts = parts.counts + b * p.V;
      std::fill(counts, counts + p.V, 0);
      for (int32_t id : a.history[idx]) {
        SINTER_CHECK(id >= 0 && id < p.V, "token {} of {}", id, p.V);
        ++counts[id];
      }
    }
    const auto logit = [&](int64_t v) {
      return counts == nullptr ? logits[v] : penalize(params, logits[v], counts[v]);
    };

    int32_t& chosen = a.ids.data_as<int32_t>()[b];
    if (params.temperature == 0) {
      uint64_t best = 0;
      for (int64_t v = 0; v < p.V; ++v) best = std::max(best, rank_key(logit(v), static_cast<uint32_t>(v)));
      chosen = static_cast<int32_t>(key_position(best));
      return;
    }
    for (int64_t v = 0; v < p.V; ++v)
      keys[v] = rank_key(logit(v) / params.temperature, static_cast<uint32_t>(v));
    chosen = draw(params, a.draw_idx[idx], keys, p.V);
  });
}

}  // namespace

extern const KernelInfo sample_plain = {
    .name = "cpu.sample_plain",
    .op = ops::Op::kSample,
    .is_oracle = true,
    .supports = [](const ops::Problem&, const DeviceInfo&) { return Support::yes(); },
    .workspace_bytes = workspace,
    .launch = launch,
};

}  // namespace sinter::kernels::cpu
