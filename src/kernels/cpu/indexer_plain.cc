#include <functional>
#include <numeric>

#include "kernels/cpu/elements.h"
#include "kernels/cpu/paged_rows.h"
#include "kernels/cpu/rank_key.h"
#include "kernels/cpu/workspace_parts.h"
#include "kernels/kernel.h"

namespace sinter::kernels::cpu {
namespace {

struct Parts {
  uint64_t* keys;  // [T, max_context]
  float* q;        // [T, heads, D]
  float* k;        // [T, D] the row at hand
};

Parts lay_out(const ops::IndexerProblem& p, WorkspaceParts& parts) {
  return {parts.take<uint64_t>(p.T * p.max_context), parts.take<float>(p.T * p.heads * p.D),
          parts.take<float>(p.T * p.D)};
}

size_t workspace(const ops::Problem& problem, const Config&) {
  WorkspaceParts parts;
  lay_out(std::get<ops::IndexerProblem>(problem), parts);
  return parts.size_bytes();
}

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<ops::IndexerProblem>(problem);
  const auto& a = std::get<ops::IndexerArgs>(args);
  WorkspaceParts carved(context.workspace.data());
  const Parts parts = lay_out(p, carved);
  for_rows(context.pool, p.T, [&](int64_t t) {
    int32_t* indices = a.indices.row<int32_t>(t);
    const PagedRows rows(a.batch, p.P, t);
    const int64_t num_visible = rows.num_visible();
    const int64_t num_chosen = std::min(num_visible, p.topk);
    std::fill(indices + num_chosen, indices + p.topk, -1);
    if (num_visible <= p.topk) {
      std::iota(indices, indices + num_chosen, 0);
      return;
    }

    const float* w = a.w.row<float>(t);
    uint64_t* keys = parts.keys + t * p.max_context;
    float* q = parts.q + t * p.heads * p.D;
    float* k = parts.k + t * p.D;
    load(p.q, row(a.q, t), 0, p.heads * p.D, q);
    for (int64_t i = 0; i < num_visible; ++i) {
      load(p.cache, row(a.k_cache, rows.page(i), rows.offset(i)), 0, p.D, k);
      float score = 0;
      for (int64_t h = 0; h < p.heads; ++h) score += w[h] * std::max(dot(q + h * p.D, k, p.D), 0.0f);
      keys[i] = rank_key(score, static_cast<uint32_t>(i));
    }
    std::nth_element(keys, keys + num_chosen, keys + num_visible, std::greater<>());
    for (int64_t i = 0; i < num_chosen; ++i) indices[i] = static_cast<int32_t>(key_position(keys[i]));
    std::sort(indices, indices + num_chosen);
  });
}

}  // namespace

extern const KernelInfo indexer_plain = {
    .name = "cpu.indexer_plain",
    .op = ops::Op::kIndexer,
    .is_oracle = true,
    .supports = [](const ops::Problem&, const DeviceInfo&) { return Support::yes(); },
    .workspace_bytes = workspace,
    .launch = launch,
};

}  // namespace sinter::kernels::cpu
