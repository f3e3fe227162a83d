#include "ops/op.h"

#include <fmt/core.h>

#include "base/error.h"

namespace sinter::ops {
namespace {

void check_contiguous(const TensorView& tensor, std::string_view name) {
  if (tensor.is_contiguous()) return;
  throw Error(ErrorKind::kInternal, {.where = fmt::format("tensor '{}'", name),
                                     .expected = "a contiguous tensor",
                                     .found = "strides",
                                     .mend = {}});
}

// Rows may be strided.
void check(const TensorView& tensor, DType dtype, const Shape& shape, std::string_view name) {
  check_shape(tensor, shape, name);
  check_dtype(tensor, dtype, name);
}

void check_whole(const TensorView& tensor, DType dtype, const Shape& shape, std::string_view name) {
  check(tensor, dtype, shape, name);
  check_contiguous(tensor, name);
}

void check_float(DType dtype, std::string_view name) {
  SINTER_CHECK(dtype == DType::kF32 || dtype == DType::kBF16, "{} is {}, not f32 or bf16", name,
               sinter::name(dtype));
}

// [num_pages, row...]: the number of pages is the owner's.
void check_cache(const TensorView& cache, DType dtype, std::initializer_list<int64_t> page,
                 std::string_view name) {
  check_float(dtype, name);
  SINTER_CHECK(cache.rank() == static_cast<int>(page.size()) + 1, "tensor '{}' has shape {}", name,
               cache.shape().to_string());
  for (int i = 1; int64_t dim : page) {
    SINTER_CHECK(cache.dim(i) == dim, "tensor '{}' has shape {}: dimension {} should be {}", name,
                 cache.shape().to_string(), i, dim);
    ++i;
  }
  check_dtype(cache, dtype, name);
  check_contiguous(cache, name);
}

void check_batch(const PagedBatch& batch, int64_t T, int64_t B) {
  SINTER_CHECK(batch.page_table.rank() == 2, "tensor 'page_table' has shape {}",
               batch.page_table.shape().to_string());
  check(batch.page_table, DType::kI32, {B, batch.page_table.dim(1)}, "page_table");
  check_whole(batch.seq_idx, DType::kI32, {T}, "seq_idx");
  check_whole(batch.positions, DType::kI32, {T}, "positions");
}

void check_indices(const TensorView& indices, int64_t T, int64_t topk) {
  if (topk == 0)
    SINTER_CHECK(indices.is_empty(), "tensor 'indices' given, but index_topk is 0");
  else
    check_whole(indices, DType::kI32, {T, topk}, "indices");
}

void check_weight(const Weight& weight, int64_t N, int64_t K) {
  SINTER_CHECK(weight.N == N && weight.K == K, "weight '{}' is [{}, {}], not [{}, {}]", weight.name, weight.N,
               weight.K, N, K);
}

void check(const EmbeddingProblem& p, const EmbeddingArgs& a) {
  check_whole(a.ids, DType::kI32, {p.T}, "ids");
  check_whole(a.weight, p.weight, {p.V, p.H}, "weight");
  check_whole(a.y, p.y, {p.T, p.H}, "y");
}

void check(const RmsNormProblem& p, const RmsNormArgs& a) {
  check(a.x, p.x, {p.N, p.H}, "x");
  check_whole(a.weight, DType::kF32, {p.H}, "weight");
  check(a.y, p.y, {p.N, p.H}, "y");
}

void check(const LayerNormProblem& p, const LayerNormArgs& a) {
  check(a.x, p.x, {p.N, p.H}, "x");
  check_whole(a.weight, DType::kF32, {p.H}, "weight");
  check_whole(a.bias, DType::kF32, {p.H}, "bias");
  check(a.y, p.y, {p.N, p.H}, "y");
}

void check(const RopeProblem& p, const RopeArgs& a) {
  SINTER_CHECK(p.R % 2 == 0, "rotary dimension {} is odd", p.R);
  check(a.x, p.x, {p.T, p.N, p.R}, "x");
  check_whole(a.positions, DType::kI32, {p.T}, "positions");
  check_whole(a.inv_freq, DType::kF32, {p.R / 2}, "inv_freq");
}

void check(const LinearProblem& p, const LinearArgs& a) {
  SINTER_CHECK(!p.accumulate || p.y == DType::kF32, "accumulation into {}", sinter::name(p.y));
  check(a.x, p.x, {p.T, p.K}, "x");
  SINTER_CHECK(a.weight != nullptr, "linear without a weight");
  const Weight& weight = a.weight->matrix();
  check_weight(weight, p.N, p.K);
  SINTER_CHECK(weight.format == p.format, "weight '{}' is {}, not {}", weight.name, name(weight.format),
               name(p.format));
  if (p.has_bias) check_whole(a.bias, DType::kF32, {p.N}, "bias");
  check(a.y, p.y, {p.T, p.N}, "y");
}

void check(const HeadLinearProblem& p, const HeadLinearArgs& a) {
  check(a.x, p.x, {p.T, p.Q, p.K}, "x");
  check_whole(a.weight, p.weight, {p.Q, p.N, p.K}, "weight");
  check(a.y, p.y, {p.T, p.Q, p.N}, "y");
}

void check(const SiluMulProblem& p, const SiluMulArgs& a) {
  check(a.gate, p.x, {p.T, p.I}, "gate");
  check(a.up, p.x, {p.T, p.I}, "up");
  check(a.y, p.y, {p.T, p.I}, "y");
}

void check(const RouterProblem& p, const RouterArgs& a) {
  SINTER_CHECK(
      p.num_groups > 0 && p.E % p.num_groups == 0 && p.topk_groups > 0 && p.topk_groups <= p.num_groups,
      "{} experts in {} groups of which {} are taken", p.E, p.num_groups, p.topk_groups);
  SINTER_CHECK(p.A <= p.topk_groups * (p.E / p.num_groups), "{} of {} experts in {} of {} groups", p.A, p.E,
               p.topk_groups, p.num_groups);
  check_whole(a.logits, DType::kF32, {p.T, p.E}, "logits");
  if (p.has_bias) check_whole(a.bias, DType::kF32, {p.E}, "bias");
  check_whole(a.ids, DType::kI32, {p.T, p.A}, "ids");
  check_whole(a.weights, DType::kF32, {p.T, p.A}, "weights");
}

void check(const MoeFfnProblem& p, const MoeFfnArgs& a) {
  SINTER_CHECK(!p.accumulate || p.y == DType::kF32, "accumulation into {}", sinter::name(p.y));
  check(a.x, p.x, {p.T, p.H}, "x");
  check_whole(a.ids, DType::kI32, {p.T, p.A}, "ids");
  check_whole(a.weights, DType::kF32, {p.T, p.A}, "weights");
  SINTER_CHECK(a.experts != nullptr, "moe_ffn without experts");
  const MoeWeights& experts = a.experts->experts();
  const auto E = static_cast<size_t>(p.E);
  SINTER_CHECK(experts.gate.size() == E && experts.up.size() == E && experts.down.size() == E,
               "{} gates, {} ups and {} downs for {} experts", experts.gate.size(), experts.up.size(),
               experts.down.size(), p.E);
  for (size_t e = 0; e < E; ++e) {
    check_weight(experts.gate[e], p.I, p.H);
    check_weight(experts.up[e], p.I, p.H);
    check_weight(experts.down[e], p.H, p.I);
    SINTER_CHECK(p.format == WeightFormat::kMixed ||
                     (experts.gate[e].format == p.format && experts.up[e].format == p.format),
                 "expert {} is not {}", e, name(p.format));
    SINTER_CHECK(p.format_down == WeightFormat::kMixed || experts.down[e].format == p.format_down,
                 "down of expert {} is not {}", e, name(p.format_down));
  }
  check_whole(a.y, p.y, {p.T, p.H}, "y");
}

void check(const MlaAttentionProblem& p, const MlaAttentionArgs& a) {
  check(a.q_latent, p.q, {p.T, p.Q, p.C}, "q_latent");
  check(a.q_pe, p.q, {p.T, p.Q, p.R}, "q_pe");
  check_cache(a.cache, p.cache, {p.P, p.C + p.R}, "cache");
  check_batch(a.batch, p.T, p.B);
  check_indices(a.indices, p.T, p.index_topk);
  check_whole(a.y, p.q, {p.T, p.Q, p.C}, "y");
}

void check(const GqaAttentionProblem& p, const GqaAttentionArgs& a) {
  SINTER_CHECK(p.G > 0 && p.Q % p.G == 0, "{} query heads over {} key heads", p.Q, p.G);
  check(a.q, p.q, {p.T, p.Q, p.D}, "q");
  check_cache(a.k_cache, p.cache, {p.P, p.G, p.D}, "k_cache");
  check_cache(a.v_cache, p.cache, {p.P, p.G, p.Dv}, "v_cache");
  check_batch(a.batch, p.T, p.B);
  check_indices(a.indices, p.T, p.index_topk);
  check_whole(a.y, p.q, {p.T, p.Q, p.Dv}, "y");
}

void check(const IndexerProblem& p, const IndexerArgs& a) {
  SINTER_CHECK(p.topk > 0, "topk is {}", p.topk);
  check_whole(a.q, p.q, {p.T, p.heads, p.D}, "q");
  check_whole(a.w, DType::kF32, {p.T, p.heads}, "w");
  check_cache(a.k_cache, p.cache, {p.P, p.D}, "k_cache");
  check_batch(a.batch, p.T, p.B);
  check_whole(a.indices, DType::kI32, {p.T, p.topk}, "indices");
}

void check(const CacheWriteProblem& p, const CacheWriteArgs& a) {
  check(a.x, p.x, {p.T, p.W}, "x");
  check_cache(a.cache, p.cache, {p.P, p.W}, "cache");
  check_batch(a.batch, p.T, p.B);
}

void check(const SampleProblem& p, const SampleArgs& a) {
  check_whole(a.logits, DType::kF32, {p.B, p.V}, "logits");
  const auto B = static_cast<size_t>(p.B);
  SINTER_CHECK(a.params.size() == B && a.history.size() == B && a.draw_idx.size() == B,
               "{} params, {} histories and {} draw indices for {} sequences", a.params.size(),
               a.history.size(), a.draw_idx.size(), p.B);
  check_whole(a.ids, DType::kI32, {p.B}, "ids");
}

std::string types(DType x, DType y) { return fmt::format("{}->{}", sinter::name(x), sinter::name(y)); }

std::string numbers(const EmbeddingProblem& p) {
  return fmt::format("T={} V={} H={} {}", p.T, p.V, p.H, types(p.weight, p.y));
}
std::string numbers(const RmsNormProblem& p) {
  return fmt::format("N={} H={} eps={} {}", p.N, p.H, p.eps, types(p.x, p.y));
}
std::string numbers(const LayerNormProblem& p) {
  return fmt::format("N={} H={} eps={} {}", p.N, p.H, p.eps, types(p.x, p.y));
}
std::string numbers(const RopeProblem& p) {
  return fmt::format("T={} N={} R={} {} scale={} {}", p.T, p.N, p.R, p.interleaved ? "interleaved" : "halves",
                     p.scale, sinter::name(p.x));
}
std::string numbers(const LinearProblem& p) {
  return fmt::format("T={} N={} K={} {} {}{}{}", p.T, p.N, p.K, name(p.format), types(p.x, p.y),
                     p.has_bias ? " bias" : "", p.accumulate ? " accumulate" : "");
}
std::string numbers(const HeadLinearProblem& p) {
  return fmt::format("T={} Q={} N={} K={} {} {}", p.T, p.Q, p.N, p.K, sinter::name(p.weight),
                     types(p.x, p.y));
}
std::string numbers(const SiluMulProblem& p) {
  return fmt::format("T={} I={} {}", p.T, p.I, types(p.x, p.y));
}
std::string numbers(const RouterProblem& p) {
  return fmt::format("T={} E={} A={} {} groups={}/{} scale={}{}{}", p.T, p.E, p.A,
                     p.scoring == RouterScoring::kSigmoid ? "sigmoid" : "softmax", p.topk_groups,
                     p.num_groups, p.scale, p.normalize ? " normalize" : "", p.has_bias ? " bias" : "");
}
std::string numbers(const MoeFfnProblem& p) {
  return fmt::format("T={} H={} I={} E={} A={} {}/{} {}{}", p.T, p.H, p.I, p.E, p.A, name(p.format),
                     name(p.format_down), types(p.x, p.y), p.accumulate ? " accumulate" : "");
}
std::string numbers(const MlaAttentionProblem& p) {
  return fmt::format("T={} B={} Q={} C={} R={} P={} context={} topk={} scale={} {} cache={}", p.T, p.B, p.Q,
                     p.C, p.R, p.P, p.max_context, p.index_topk, p.scale, sinter::name(p.q),
                     sinter::name(p.cache));
}
std::string numbers(const GqaAttentionProblem& p) {
  return fmt::format("T={} B={} Q={} G={} D={} Dv={} P={} context={} topk={} scale={} {} cache={}", p.T, p.B,
                     p.Q, p.G, p.D, p.Dv, p.P, p.max_context, p.index_topk, p.scale, sinter::name(p.q),
                     sinter::name(p.cache));
}
std::string numbers(const IndexerProblem& p) {
  return fmt::format("T={} B={} heads={} D={} P={} context={} topk={} {} cache={}", p.T, p.B, p.heads, p.D,
                     p.P, p.max_context, p.topk, sinter::name(p.q), sinter::name(p.cache));
}
std::string numbers(const CacheWriteProblem& p) {
  return fmt::format("T={} B={} W={} P={} {}", p.T, p.B, p.W, p.P, types(p.x, p.cache));
}
std::string numbers(const SampleProblem& p) { return fmt::format("B={} V={}", p.B, p.V); }

}  // namespace

std::string_view name(Op op) {
  switch (op) {
    case Op::kEmbedding: return "embedding";
    case Op::kRmsNorm: return "rms_norm";
    case Op::kLayerNorm: return "layer_norm";
    case Op::kRope: return "rope";
    case Op::kLinear: return "linear";
    case Op::kHeadLinear: return "head_linear";
    case Op::kSiluMul: return "silu_mul";
    case Op::kRouter: return "router";
    case Op::kMoeFfn: return "moe_ffn";
    case Op::kMlaAttention: return "mla_attention";
    case Op::kGqaAttention: return "gqa_attention";
    case Op::kIndexer: return "indexer";
    case Op::kCacheWrite: return "cache_write";
    case Op::kSample: return "sample";
  }
  return "?";
}

std::string describe(const Problem& problem) {
  return std::visit([&](const auto& p) { return fmt::format("{} {}", name(op_of(problem)), numbers(p)); },
                    problem);
}

void check_args(const Problem& problem, const Args& args) {
  SINTER_CHECK(problem.index() == args.index(), "arguments of op {} for op {}", args.index(),
               problem.index());
  std::visit(
      [&](const auto& p) {
        std::visit(
            [&](const auto& a) {
              if constexpr (requires { check(p, a); }) check(p, a);
            },
            args);
      },
      problem);
}

}  // namespace sinter::ops
