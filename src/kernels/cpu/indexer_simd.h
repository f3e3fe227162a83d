// The lightning indexer over a bf16 cache. Belongs inside a target region, after simd_<isa>.h.
//
// Every worker scores a part of each token's rows, four rows against four heads at a time; then tokens are
// shared out and the choice is exact: ranks are (score, lower position first).
#pragma once

namespace sinter::kernels::cpu {
namespace {

inline constexpr int64_t kTokensAtOnce = 32;  // whose ranks are in memory

struct IndexerSpace {
  int64_t width, queries_bytes, end;

  explicit IndexerSpace(const ops::IndexerProblem& p) {
    width = (p.D + Bf16Dot::kStep - 1) / Bf16Dot::kStep * Bf16Dot::kStep;
    queries_bytes = (p.T * p.heads * width * static_cast<int64_t>(sizeof(Bf16Dot::X)) + 63) / 64 * 64;
    end = queries_bytes + std::min(p.T, kTokensAtOnce) * p.max_context * 8;
  }
};

inline size_t indexer_workspace(const ops::Problem& problem, const Config&) {
  return static_cast<size_t>(IndexerSpace(std::get<ops::IndexerProblem>(problem)).end);
}

// Ranks of rows [begin, end) of a sequence. Scores are summed in the order of the heads.
SINTER_INLINE void rank_rows(const ops::IndexerProblem& p, const Bf16Dot::X* queries, int64_t width,
                             const float* weights, const uint16_t* cache, const PagedRows& pages,
                             int64_t begin, int64_t end, uint64_t* ranks) {
  for (int64_t position = begin; position < end; position += 4) {
    const int count = static_cast<int>(std::min<int64_t>(4, end - position));
    const uint16_t* rows[4];
    for (int j = 0; j < 4; ++j) {
      const int64_t at = position + std::min(j, count - 1);
      rows[j] = cache + (pages.page(at) * p.P + pages.offset(at)) * p.D;
    }
    float scores[4] = {};
    for (int64_t head = 0; head < p.heads; head += 4) {
      const int num_heads = static_cast<int>(std::min<int64_t>(4, p.heads - head));
      const Bf16Dot::X* x[4];
      for (int i = 0; i < 4; ++i) x[i] = queries + (head + std::min(i, num_heads - 1)) * width;
      alignas(64) float dots[16];
      Bf16Dot::dots_4x4(x, rows, p.D, dots);
      for (int i = 0; i < num_heads; ++i)
        for (int j = 0; j < 4; ++j) scores[j] += weights[head + i] * std::max(dots[4 * i + j], 0.0f);
    }
    for (int j = 0; j < count; ++j)
      ranks[position + j] = rank_key(scores[j], static_cast<uint32_t>(position + j));
  }
}

// The topk best of more than that.
inline void choose_rows(uint64_t* ranks, int64_t count, int64_t topk, int32_t* indices) {
  std::nth_element(ranks, ranks + topk, ranks + count, std::greater<>());
  for (int64_t i = 0; i < topk; ++i) indices[i] = static_cast<int32_t>(key_position(ranks[i]));
  std::sort(indices, indices + topk);
}

inline void launch_indexer(LaunchContext& context, const ops::Problem& problem, const ops::Args& args,
                           const Config&) {
  const auto& p = std::get<ops::IndexerProblem>(problem);
  const auto& a = std::get<ops::IndexerArgs>(args);
  const IndexerSpace space(p);
  auto* queries = reinterpret_cast<Bf16Dot::X*>(context.workspace.data());
  auto* ranks = reinterpret_cast<uint64_t*>(context.workspace.data() + space.queries_bytes);
  const auto* cache = a.k_cache.data_as<uint16_t>();
  ThreadPool& pool = context.pool;
  pool.run([&](int worker_idx) SINTER_VECTORISED {
    const auto [first_row, last_row] = pool.part(worker_idx, p.T * p.heads);
    for (int64_t row = first_row; row < last_row; ++row) {
      const auto* from = static_cast<const uint16_t*>(a.q.data()) + row / p.heads * a.q.stride(0) +
                         row % p.heads * a.q.stride(1);
      Bf16Dot::X* to = queries + row * space.width;
      for (int64_t d = 0; d < p.D; ++d) to[d] = Bf16Dot::from_bf16(from[d]);
      std::fill(to + p.D, to + space.width, Bf16Dot::X{});
    }
    pool.barrier();
    for (int64_t first = 0; first < p.T; first += kTokensAtOnce) {
      const int64_t last = std::min(first + kTokensAtOnce, p.T);
      for (int64_t t = first; t < last; ++t) {
        const PagedRows pages(a.batch, p.P, t);
        if (pages.num_visible() <= p.topk) continue;
        const auto [begin, end] = pool.part(worker_idx, pages.num_visible(), 64);
        rank_rows(p, queries + t * p.heads * space.width, space.width, a.w.template row<float>(t), cache,
                  pages, begin, end, ranks + (t - first) * p.max_context);
      }
      pool.barrier();
      for (int64_t t = first + worker_idx; t < last; t += pool.num_threads()) {
        const int64_t count = PagedRows(a.batch, p.P, t).num_visible();
        auto* indices = a.indices.template row<int32_t>(t);
        if (count > p.topk) {
          choose_rows(ranks + (t - first) * p.max_context, count, p.topk, indices);
        } else {
          for (int64_t i = 0; i < p.topk; ++i) indices[i] = i < count ? static_cast<int32_t>(i) : -1;
        }
      }
      pool.barrier();
    }
  });
}

}  // namespace
}  // namespace sinter::kernels::cpu
