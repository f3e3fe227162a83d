// MLA in the absorbed form: keys and values are one row. Work is shared out as (token, four heads): what
// follows in a worker's range reads the same rows, from its cache. Belongs inside a target region, after
// attention_simd.h.
#pragma once

namespace sinter::kernels::cpu {
namespace {

inline void launch_mla_attention(LaunchContext& context, const ops::Problem& problem, const ops::Args& args,
                                 const Config&) {
  const auto& p = std::get<ops::MlaAttentionProblem>(problem);
  const auto& a = std::get<ops::MlaAttentionArgs>(args);
  const int64_t num_blocks = (p.Q + kHeads - 1) / kHeads;
  const auto* cache = a.cache.data_as<uint16_t>();
  context.pool.run([&](int worker_idx) SINTER_VECTORISED {
    const auto [begin, end] = context.pool.part(worker_idx, p.T * num_blocks);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t t = item / num_blocks, q = item % num_blocks * kHeads;
      const int count = static_cast<int>(std::min<int64_t>(kHeads, p.Q - q));
      HeadBlock block(count, p.C + p.R, p.C, p.scale);
      for (int h = 0; h < count; ++h) {
        block.set_query(h, 0, static_cast<const uint16_t*>(head_address(a.q_latent, t, q + h)), p.C);
        block.set_query(h, p.C, static_cast<const uint16_t*>(head_address(a.q_pe, t, q + h)), p.R);
      }
      attend(block, SeenRows(a.batch, p.P, a.indices, p.index_topk, t), cache, p.C + p.R, cache, p.C + p.R);
      for (int h = 0; h < count; ++h) block.finish(h, p.q, head_address(a.y, t, q + h));
    }
  });
}

}  // namespace
}  // namespace sinter::kernels::cpu
