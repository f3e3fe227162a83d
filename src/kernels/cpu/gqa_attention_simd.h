// Grouped-query attention. Work is shared out as (token, four heads): what follows in a
// worker's range reads the same rows, from its cache. Belongs inside a target region, after attention_simd.h.
#pragma once

namespace sinter::kernels::cpu {
namespace {

inline void launch_gqa_attention(LaunchContext& context, const ops::Problem& problem, const ops::Args& args,
                                 const Config&) {
  const auto& p = std::get<ops::GqaAttentionProblem>(problem);
  const auto& a = std::get<ops::GqaAttentionArgs>(args);
  const int64_t group = p.Q / p.G, num_blocks = (group + kHeads - 1) / kHeads;
  const auto* keys = a.k_cache.data_as<uint16_t>();
  const auto* values = a.v_cache.data_as<uint16_t>();
  context.pool.run([&](int worker_idx) SINTER_VECTORISED {
    const auto [begin, end] = context.pool.part(worker_idx, p.T * p.G * num_blocks);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t t = item / (p.G * num_blocks), g = item / num_blocks % p.G;
      const int64_t first = item % num_blocks * kHeads, q = g * group + first;
      const int count = static_cast<int>(std::min<int64_t>(kHeads, group - first));
      HeadBlock block(count, p.D, p.Dv, p.scale);
      for (int h = 0; h < count; ++h)
        block.set_query(h, 0, static_cast<const uint16_t*>(head_address(a.q, t, q + h)), p.D);
      attend(block, SeenRows(a.batch, p.P, a.indices, p.index_topk, t), keys + g * p.D, p.G * p.D,
             values + g * p.Dv, p.G * p.Dv);
      for (int h = 0; h < count; ++h) block.finish(h, p.q, head_address(a.y, t, q + h));
    }
  });
}

}  // namespace
}  // namespace sinter::kernels::cpu
