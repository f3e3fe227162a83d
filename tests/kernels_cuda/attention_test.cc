#include "kernels_cuda/case_check.h"
#include "kernels_cuda/device_types.h"

#undef SINTER_KERNEL
#define SINTER_Q Q
#define SINTER_CACHE Cache
#define SINTER_D kD
#define SINTER_DV kDv
#define SINTER_KERNEL(max_threads)                       \
  template <typename Q, typename Cache, int kD, int kDv> \
  void
#include "kernels/cuda/gqa_attention.cu"

#define SINTER_C kC
#define SINTER_R kR
#define SINTER_GROUPS kGroups
#undef SINTER_KERNEL
#define SINTER_KERNEL(max_threads)                                   \
  template <typename Q, typename Cache, int kC, int kR, int kGroups> \
  void
#include "kernels/cuda/mla_attention.cu"

#undef SINTER_KERNEL
#define SINTER_KERNEL(max_threads) \
  template <typename Q>            \
  void
#include "kernels/cuda/attention_merge.cu"

namespace sinter::kernels_cuda {
namespace {

template <typename Q>
void merge(int64_t num_items, int64_t Dv, int num_splits, const std::vector<float>& sums,
           const std::vector<float>& states, Q* y, bool backwards) {
  if (num_splits == 1) return;
  simt::Machine::get().run({narrow(num_items)}, 128, 0, backwards, [&] {
    gpu::attention_merge<Q>(sums.data(), states.data(), y, {narrow(Dv), num_splits});
  });
}

int num_splits_of(int64_t max_context, int64_t index_topk, int split_rows) {
  return split_rows == 0 ? 1 : blocks(index_topk > 0 ? index_topk : max_context, split_rows);
}

// split_rows: 0 for one stretch.
template <int kD, int kDv>
void run_gqa_as(const ops::GqaAttentionProblem& p, const ops::GqaAttentionArgs& a, int row_warps,
                int split_rows, bool backwards) {
  with_float_type(p.q, [&]<typename Q>(Q) {
    with_float_type(p.cache, [&]<typename Cache>(Cache) {
      const int num_splits = num_splits_of(p.max_context, p.index_topk, split_rows);
      const gpu::GqaAttentionParams params = {
          .T = narrow(p.T),
          .Q = narrow(p.Q),
          .G = narrow(p.G),
          .P = narrow(p.P),
          .index_topk = narrow(p.index_topk),
          .scale = p.scale,
          .tile_tokens = gpu::gqa_tile_tokens(narrow(p.Q), narrow(p.G), narrow(p.index_topk)),
          .tile_heads = gpu::gqa_tile_heads(narrow(p.Q), narrow(p.G)),
          .row_warps = row_warps,
          .num_splits = num_splits,
          .split_rows = num_splits == 1 ? 1 << 30 : split_rows,
          .q_stride_token = a.q.stride(0),
          .q_stride_head = a.q.stride(1),
          .page_table_stride = a.batch.page_table.stride(0)};
      auto sums = poisoned<float>(num_splits == 1 ? 0 : p.T * p.Q * num_splits * p.Dv);
      auto states = poisoned<float>(num_splits == 1 ? 0 : p.T * p.Q * num_splits * 2);
      simt::Machine::get().run(
          {blocks(p.T, params.tile_tokens * row_warps), narrow(p.G) * blocks(p.Q / p.G, params.tile_heads),
           num_splits},
          gpu::kGqaThreads, static_cast<size_t>(gpu::gqa_shared_bytes(kD, kDv, row_warps, gpu::kPartsOf<Q>)),
          backwards, [&] {
            gpu::gqa_attention<Q, Cache, kD, kDv>(
                memory_of<Q>(a.q), memory_of<Cache>(a.k_cache), memory_of<Cache>(a.v_cache),
                memory_of<int>(a.batch.page_table), memory_of<int>(a.batch.seq_idx),
                memory_of<int>(a.batch.positions), memory_of<int>(a.indices), memory_of<Q>(a.y), sums.data(),
                states.data(), params);
          });
      merge(p.T * p.Q, p.Dv, num_splits, sums, states, memory_of<Q>(a.y), backwards);
    });
  });
}

void run_gqa(const ops::GqaAttentionProblem& p, const ops::GqaAttentionArgs& a, int row_warps, int split_rows,
             bool backwards) {
  const auto is = [&](int64_t D, int64_t Dv) { return p.D == D && p.Dv == Dv; };
  if (is(48, 48)) return run_gqa_as<48, 48>(p, a, row_warps, split_rows, backwards);
  if (is(40, 24)) return run_gqa_as<40, 24>(p, a, row_warps, split_rows, backwards);
  if (is(33, 17)) return run_gqa_as<33, 17>(p, a, row_warps, split_rows, backwards);
  if (is(128, 128)) return run_gqa_as<128, 128>(p, a, row_warps, split_rows, backwards);
  if (is(256, 256)) return run_gqa_as<256, 256>(p, a, row_warps, split_rows, backwards);
  FAIL() << "no instance for D " << p.D << ", Dv " << p.Dv;
}

double allowed_gqa(const ops::GqaAttentionProblem&, DType output) {
  return output == DType::kBF16 ? 8e-3 : 1e-5;
}

void check_gqa(int row_warps, int split_rows) {
  check_cases<ops::GqaAttentionProblem, ops::GqaAttentionArgs>(
      [&](const auto& p, const auto& a, bool backwards) { run_gqa(p, a, row_warps, split_rows, backwards); },
      any<ops::GqaAttentionProblem>, allowed_gqa);
}

TEST(GqaAttention, GivesTheOraclesAnswerWithWarpsAlongTheContext) { check_gqa(1, 0); }
TEST(GqaAttention, GivesTheOraclesAnswerWithWarpsAlongTheTokens) { check_gqa(4, 0); }
TEST(GqaAttention, GivesTheOraclesAnswerFromStretchesOfTheContext) { check_gqa(2, 64); }

template <int kC, int kR, int kGroups>
void run_mla_as(const ops::MlaAttentionProblem& p, const ops::MlaAttentionArgs& a, int split_rows,
                bool backwards) {
  with_float_type(p.q, [&]<typename Q>(Q) {
    with_float_type(p.cache, [&]<typename Cache>(Cache) {
      const int num_splits = num_splits_of(p.max_context, p.index_topk, split_rows);
      const gpu::MlaAttentionParams params = {.T = narrow(p.T),
                                              .Q = narrow(p.Q),
                                              .P = narrow(p.P),
                                              .index_topk = narrow(p.index_topk),
                                              .scale = p.scale,
                                              .num_splits = num_splits,
                                              .split_rows = num_splits == 1 ? 1 << 30 : split_rows,
                                              .latent_stride_token = a.q_latent.stride(0),
                                              .latent_stride_head = a.q_latent.stride(1),
                                              .pe_stride_token = a.q_pe.stride(0),
                                              .pe_stride_head = a.q_pe.stride(1),
                                              .page_table_stride = a.batch.page_table.stride(0)};
      auto sums = poisoned<float>(num_splits == 1 ? 0 : p.T * p.Q * num_splits * p.C);
      auto states = poisoned<float>(num_splits == 1 ? 0 : p.T * p.Q * num_splits * 2);
      simt::Machine::get().run(
          {narrow(p.T), blocks(p.Q, 16 * kGroups), num_splits}, 128 * kGroups,
          static_cast<size_t>(gpu::mla_shared_bytes(kC, kR, kGroups, gpu::kPartsOf<Q>)), backwards, [&] {
            gpu::mla_attention<Q, Cache, kC, kR, kGroups>(
                memory_of<Q>(a.q_latent), memory_of<Q>(a.q_pe), memory_of<Cache>(a.cache),
                memory_of<int>(a.batch.page_table), memory_of<int>(a.batch.seq_idx),
                memory_of<int>(a.batch.positions), memory_of<int>(a.indices), memory_of<Q>(a.y), sums.data(),
                states.data(), params);
          });
      merge(p.T * p.Q, p.C, num_splits, sums, states, memory_of<Q>(a.y), backwards);
    });
  });
}

template <int kGroups>
void check_mla(int split_rows) {
  check_cases<ops::MlaAttentionProblem, ops::MlaAttentionArgs>(
      [&](const auto& p, const auto& a, bool backwards) {
        const auto is = [&](int64_t C, int64_t R) { return p.C == C && p.R == R; };
        if (is(96, 32)) return run_mla_as<96, 32, kGroups>(p, a, split_rows, backwards);
        if (is(64, 16)) return run_mla_as<64, 16, kGroups>(p, a, split_rows, backwards);
        if (is(72, 8)) return run_mla_as<72, 8, kGroups>(p, a, split_rows, backwards);
        if (is(512, 64)) return run_mla_as<512, 64, kGroups>(p, a, split_rows, backwards);
        FAIL() << "no instance for C " << p.C << ", R " << p.R;
      },
      any<ops::MlaAttentionProblem>,
      [](const ops::MlaAttentionProblem&, DType output) { return output == DType::kBF16 ? 8e-3 : 1e-5; });
}

TEST(MlaAttention, GivesTheOraclesAnswer) { check_mla<1>(0); }
TEST(MlaAttention, GivesTheOraclesAnswerFromStretchesOfTheContext) { check_mla<2>(32); }

}  // namespace
}  // namespace sinter::kernels_cuda
