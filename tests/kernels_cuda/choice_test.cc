// Kernels whose results are choices: router, indexer, sampling.
#include <map>

#include "kernels_cuda/case_check.h"
#include "kernels_cuda/device_types.h"

#undef SINTER_KERNEL
#define SINTER_Q Q
#define SINTER_CACHE Cache
#define SINTER_D kD
#define SINTER_KERNEL(max_threads)              \
  template <typename Q, typename Cache, int kD> \
  void
#include "kernels/cuda/indexer.cu"

#undef SINTER_KERNEL
#define SINTER_KERNEL(max_threads) inline void
#include "kernels/cuda/router.cu"
#include "kernels/cuda/sample.cu"

namespace sinter::kernels_cuda {
namespace {

TEST(Router, GivesTheOraclesAnswer) {
  check_cases<ops::RouterProblem, ops::RouterArgs>(
      [](const ops::RouterProblem& p, const ops::RouterArgs& a, bool backwards) {
        const gpu::RouterParams params = {narrow(p.T),          narrow(p.E),
                                          narrow(p.A),          p.scoring == ops::RouterScoring::kSoftmax,
                                          narrow(p.num_groups), narrow(p.topk_groups),
                                          p.normalize,          p.scale};
        simt::Machine::get().run({blocks(p.T, gpu::kRouterTokens)}, gpu::kRouterTokens * gpu::kWarp,
                                 static_cast<size_t>(gpu::router_shared_bytes(params.E)), backwards, [&] {
                                   gpu::router(memory_of<float>(a.logits), memory_of<float>(a.bias),
                                               memory_of<int>(a.ids), memory_of<float>(a.weights), params);
                                 });
      },
      any<ops::RouterProblem>, usual_error<ops::RouterProblem>);
}

template <int kD>
void run_indexer_as(const ops::IndexerProblem& p, const ops::IndexerArgs& a, bool backwards) {
  with_float_type(p.q, [&]<typename Q>(Q) {
    with_float_type(p.cache, [&]<typename Cache>(Cache) {
      const gpu::IndexerParams params = {narrow(p.heads), narrow(p.P), narrow(p.topk), p.max_context,
                                         a.batch.page_table.stride(0)};
      auto keys = poisoned<gpu::U32>(p.T * p.max_context);
      auto& machine = simt::Machine::get();
      machine.run({blocks(p.max_context, gpu::kIndexerRows), narrow(p.T)}, gpu::kIndexerThreads,
                  static_cast<size_t>(gpu::indexer_shared_bytes(params.heads, kD, gpu::kPartsOf<Q>)),
                  backwards, [&] {
                    gpu::indexer_scores<Q, Cache, kD>(
                        memory_of<Q>(a.q), memory_of<float>(a.w), memory_of<Cache>(a.k_cache),
                        memory_of<int>(a.batch.page_table), memory_of<int>(a.batch.seq_idx),
                        memory_of<int>(a.batch.positions), keys.data(), params);
                  });
      machine.run({narrow(p.T)}, 128, 0, backwards, [&] {
        gpu::indexer_topk<Q, Cache, kD>(keys.data(), memory_of<int>(a.batch.positions),
                                        memory_of<int>(a.indices), params);
      });
    });
  });
}

TEST(Indexer, GivesTheOraclesAnswer) {
  check_cases<ops::IndexerProblem, ops::IndexerArgs>(
      [](const ops::IndexerProblem& p, const ops::IndexerArgs& a, bool backwards) {
        if (p.D == 24) return run_indexer_as<24>(p, a, backwards);
        if (p.D == 64) return run_indexer_as<64>(p, a, backwards);
        if (p.D == 128) return run_indexer_as<128>(p, a, backwards);
        FAIL() << "no instance for D " << p.D;
      },
      any<ops::IndexerProblem>, usual_error<ops::IndexerProblem>);
}

// Keys with many ties, as when all relus are zero: the choice must still be exact.
TEST(IndexerTopk, BreaksTiesByPosition) {
  for (const int num_values : {1, 2, 5, 1000}) {
    for (const int num_visible : {1, 700, 4096, 4097, 9001}) {
      constexpr int kTopk = 699;
      std::vector<gpu::U32> keys(static_cast<size_t>(num_visible));
      for (size_t i = 0; i < keys.size(); ++i)
        keys[i] = gpu::order_key(static_cast<float>(i * 7919 % static_cast<size_t>(num_values)) - 1);
      std::vector<int> order(keys.size());
      for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return keys[static_cast<size_t>(a)] > keys[static_cast<size_t>(b)];
      });
      order.resize(std::min<size_t>(order.size(), kTopk));
      std::sort(order.begin(), order.end());
      order.resize(kTopk, -1);

      auto indices = poisoned<int>(kTopk);
      const int position = num_visible - 1;
      simt::Machine::get().run({1}, gpu::kTopkThreads, 0, false, [&] {
        gpu::indexer_topk<float, float, 1>(keys.data(), &position, indices.data(),
                                           {1, 1, kTopk, num_visible, 1});
      });
      ASSERT_EQ(indices, order) << num_values << " values, " << num_visible << " rows";
    }
  }
}

TEST(Sample, GivesTheOraclesAnswer) {
  check_cases<ops::SampleProblem, ops::SampleArgs>(
      [](const ops::SampleProblem& p, const ops::SampleArgs& a, bool backwards) {
        std::vector<gpu::SampleRow> rows;
        std::vector<gpu::TokenCount> history;
        for (size_t b = 0; b < static_cast<size_t>(p.B); ++b) {
          const ops::SampleParams& params = a.params[b];
          std::map<int, int> counts;
          for (const int32_t token : a.history[b]) ++counts[token];
          rows.push_back({.temperature = params.temperature,
                          .top_k = params.top_k,
                          .top_p = params.top_p,
                          .min_p = params.min_p,
                          .repetition_penalty = params.repetition_penalty,
                          .presence_penalty = params.presence_penalty,
                          .frequency_penalty = params.frequency_penalty,
                          .num_tokens = static_cast<int>(counts.size()),
                          .first_token = static_cast<long long>(history.size()),
                          .seed = params.seed,
                          .draw_idx = a.draw_idx[b]});
          for (const auto& [token, count] : counts) history.push_back({token, count});
        }
        auto keys = poisoned<gpu::U32>(p.B * p.V);
        auto counts = poisoned<int>(p.B * p.V);
        simt::Machine::get().run({narrow(p.B)}, 128, 0, backwards, [&] {
          gpu::sample(memory_of<float>(a.logits), rows.data(), history.data(), keys.data(), counts.data(),
                      memory_of<int>(a.ids), {narrow(p.V)});
        });
      },
      any<ops::SampleProblem>, usual_error<ops::SampleProblem>);
}

}  // namespace
}  // namespace sinter::kernels_cuda
