#include "workbench/model_problems.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "base/error.h"

namespace sinter::workbench {
namespace {

using models::Part;
using models::TensorSpec;
using ops::WeightFormat;

constexpr int64_t kPageTokens = 64;

class ProblemList {
 public:
  void add(std::string where, const ops::Problem& problem) {
    const auto same = std::ranges::find(problems_, problem, &ModelProblem::problem);
    if (same == problems_.end()) {
      problems_.push_back({std::move(where), problem});
    } else if (same->where.find(where) == std::string::npos) {
      same->where += ", " + where;
    }
  }
  std::vector<ModelProblem> take() { return std::move(problems_); }

 private:
  std::vector<ModelProblem> problems_;
};

std::string last_name(const std::string& module) { return module.substr(module.rfind('.') + 1); }

std::string label(const TensorSpec& tensor) {
  std::string module = last_name(tensor.name);
  switch (tensor.part) {
    case Part::kShared: return "shared " + module;
    case Part::kDense: return "dense " + module;
    case Part::kIndexer: return "indexer " + module;
    case Part::kRouter: return "router";
    default: return module;
  }
}

DType dtype_of(WeightFormat format) {
  return format == WeightFormat::kF32   ? DType::kF32
         : format == WeightFormat::kF16 ? DType::kF16
                                        : DType::kBF16;
}

// What is normed or turned next stays in float32.
bool has_f32_result(const TensorSpec& tensor, const models::DecoderSpec& spec) {
  const auto* gqa = std::get_if<models::GqaSpec>(&spec.attention);
  if (gqa != nullptr && gqa->has_qk_norm && tensor.name.ends_with(".self_attn.q_proj")) return true;
  for (const char* ending : {".self_attn.k_proj", ".q_a_proj", ".kv_a_proj_with_mqa", ".indexer.wk",
                             ".indexer.weights_proj", ".o_proj", ".down_proj"})
    if (tensor.name.ends_with(ending)) return true;
  return tensor.part == Part::kRouter || tensor.part == Part::kHead;
}

void add_linears(const models::DecoderSpec& spec, const Inventory& inventory, int64_t T, ProblemList& list) {
  const auto* gqa = std::get_if<models::GqaSpec>(&spec.attention);
  const auto add = [&](std::string where, const TensorSpec& tensor, WeightFormat format) {
    const bool is_residual = tensor.name.ends_with(".o_proj") || tensor.name.ends_with(".down_proj");
    const bool is_qkv = tensor.part == Part::kAttention && !is_residual;
    list.add(std::move(where),
             ops::LinearProblem{.T = T,
                                .N = tensor.N,
                                .K = tensor.K,
                                .format = format,
                                .y = has_f32_result(tensor, spec) ? DType::kF32 : DType::kBF16,
                                .has_bias = gqa != nullptr && gqa->has_bias && is_qkv,
                                .accumulate = is_residual});
  };
  for (size_t i = 0; i < inventory.tensors.size(); ++i) {
    const TensorSpec& tensor = inventory.tensors[i];
    if (tensor.kind == TensorSpec::Kind::kTable) {
      list.add("embedding", ops::EmbeddingProblem{
                                .T = T, .V = spec.V, .H = spec.H, .weight = dtype_of(inventory.formats[i])});
      if (spec.has_tied_head) {
        TensorSpec head = tensor;
        head.part = Part::kHead;
        add("head", head, inventory.formats[i]);
      }
    }
    // kv_b is split by head and used in the absorbed form.
    if (tensor.kind != TensorSpec::Kind::kLinear || tensor.part == Part::kRouted ||
        tensor.name.ends_with(".kv_b_proj"))
      continue;
    add(label(tensor), tensor, inventory.formats[i]);
  }
}

void add_experts(const models::MoeSpec& moe, const Inventory& inventory, int64_t T, int64_t H,
                 ProblemList& list) {
  list.add("router choice", ops::RouterProblem{.T = T,
                                               .E = moe.E,
                                               .A = moe.A,
                                               .scoring = moe.scoring,
                                               .num_groups = moe.num_groups,
                                               .topk_groups = moe.topk_groups,
                                               .normalize = moe.normalize,
                                               .scale = static_cast<float>(moe.scale),
                                               .has_bias = moe.has_bias});
  // Formats of each layer: those of gate and up, those of down; mixed where the experts disagree.
  std::optional<WeightFormat> gate_up, down;
  const auto join = [](std::optional<WeightFormat>& all, WeightFormat one) {
    all = !all || *all == one ? one : WeightFormat::kMixed;
  };
  for (size_t i = 0; i < inventory.tensors.size(); ++i) {
    const TensorSpec& tensor = inventory.tensors[i];
    if (tensor.part == Part::kRouted)
      join(tensor.name.ends_with(".down_proj") ? down : gate_up, inventory.formats[i]);
    const bool is_last = i + 1 == inventory.tensors.size() || inventory.tensors[i + 1].layer != tensor.layer;
    if (!is_last || !gate_up || !down) continue;
    list.add("routed experts", ops::MoeFfnProblem{.T = T,
                                                  .H = H,
                                                  .I = moe.I,
                                                  .E = moe.E,
                                                  .A = moe.A,
                                                  .format = *gate_up,
                                                  .format_down = *down,
                                                  .y = DType::kF32,
                                                  .accumulate = true});
    gate_up.reset();
    down.reset();
  }
}

// Numbers that the attention of all kinds shares.
struct Sizes {
  int64_t T, max_context, context;  // max_context: the bucket
  double norm_eps;
  const models::RopeSpec& rope;
};

void add_norm(std::string where, int64_t N, int64_t H, double eps, DType y, ProblemList& list) {
  list.add(std::move(where), ops::RmsNormProblem{.N = N, .H = H, .eps = static_cast<float>(eps), .y = y});
}

void add_rope(std::string where, const Sizes& sizes, int64_t N, bool interleaved, DType x,
              ProblemList& list) {
  list.add(std::move(where), ops::RopeProblem{.T = sizes.T,
                                              .N = N,
                                              .R = sizes.rope.R,
                                              .interleaved = interleaved,
                                              .scale = sizes.rope.cos_sin_scale(),
                                              .x = x});
}

void add_cache_write(std::string where, const Sizes& sizes, int64_t W, DType x, ProblemList& list) {
  list.add(std::move(where), ops::CacheWriteProblem{.T = sizes.T, .B = 1, .W = W, .P = kPageTokens, .x = x});
}

void add_indexer(const models::IndexerSpec& indexer, const Sizes& sizes, ProblemList& list) {
  list.add("indexer norm",
           ops::LayerNormProblem{
               .N = sizes.T, .H = indexer.D, .eps = static_cast<float>(indexer.norm_eps), .y = DType::kF32});
  add_rope("indexer key rope", sizes, 1, indexer.rope_interleaved, DType::kF32, list);
  add_cache_write("indexer key cache", sizes, indexer.D, DType::kF32, list);
  if (sizes.context <= indexer.topk) return;
  add_rope("indexer query rope", sizes, indexer.heads, indexer.rope_interleaved, DType::kBF16, list);
  list.add("indexer choice", ops::IndexerProblem{.T = sizes.T,
                                                 .B = 1,
                                                 .heads = indexer.heads,
                                                 .D = indexer.D,
                                                 .P = kPageTokens,
                                                 .max_context = sizes.max_context,
                                                 .topk = indexer.topk});
}

void add_mla(const models::MlaSpec& mla, const Sizes& sizes, ProblemList& list) {
  const int64_t T = sizes.T;
  if (mla.q_rank > 0) add_norm("query norm", T, mla.q_rank, sizes.norm_eps, DType::kBF16, list);
  add_norm("latent norm", T, mla.C, sizes.norm_eps, DType::kF32, list);
  add_rope("query rope", sizes, mla.Q, sizes.rope.interleaved, DType::kBF16, list);
  add_rope("key rope", sizes, 1, sizes.rope.interleaved, DType::kF32, list);
  add_cache_write("latent cache", sizes, mla.C + mla.R, DType::kF32, list);
  list.add("kv_b_proj, absorbed into q",
           ops::HeadLinearProblem{.T = T, .Q = mla.Q, .N = mla.C, .K = mla.nope});
  list.add("kv_b_proj, absorbed into the output",
           ops::HeadLinearProblem{.T = T, .Q = mla.Q, .N = mla.Dv, .K = mla.C});
  if (mla.indexer) add_indexer(*mla.indexer, sizes, list);
  const bool is_sparse = mla.indexer && sizes.context > mla.indexer->topk;
  list.add("attention", ops::MlaAttentionProblem{.T = T,
                                                 .B = 1,
                                                 .Q = mla.Q,
                                                 .C = mla.C,
                                                 .R = mla.R,
                                                 .P = kPageTokens,
                                                 .max_context = sizes.max_context,
                                                 .index_topk = is_sparse ? mla.indexer->topk : 0,
                                                 .scale = mla.softmax_scale});
}

void add_gqa(const models::GqaSpec& gqa, const Sizes& sizes, ProblemList& list) {
  const int64_t T = sizes.T;
  if (gqa.has_qk_norm) {
    add_norm("query norm", T * gqa.Q, gqa.D, sizes.norm_eps, DType::kBF16, list);
    add_norm("key norm", T * gqa.G, gqa.D, sizes.norm_eps, DType::kF32, list);
  }
  add_rope("query rope", sizes, gqa.Q, sizes.rope.interleaved, DType::kBF16, list);
  add_rope("key rope", sizes, gqa.G, sizes.rope.interleaved, DType::kF32, list);
  add_cache_write("key cache", sizes, gqa.G * gqa.D, DType::kF32, list);
  add_cache_write("value cache", sizes, gqa.G * gqa.D, DType::kBF16, list);
  list.add("attention",
           ops::GqaAttentionProblem{.T = T,
                                    .B = 1,
                                    .Q = gqa.Q,
                                    .G = gqa.G,
                                    .D = gqa.D,
                                    .Dv = gqa.D,
                                    .P = kPageTokens,
                                    .max_context = sizes.max_context,
                                    .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(gqa.D)))});
}

void add_silu(const models::DecoderSpec& spec, int64_t T, ProblemList& list) {
  const bool has_dense = std::ranges::find(spec.is_sparse, false) != spec.is_sparse.end();
  if (has_dense) list.add("dense SiLU", ops::SiluMulProblem{.T = T, .I = spec.dense_I});
  if (spec.moe && spec.moe->shared_I > 0)
    list.add("shared SiLU", ops::SiluMulProblem{.T = T, .I = spec.moe->shared_I});
}

}  // namespace

std::vector<ModelProblem> model_problems(const models::DecoderSpec& spec, const Inventory& inventory,
                                         int64_t T, int64_t context) {
  if (context > spec.max_positions)
    throw Error(ErrorKind::kLimit,
                {.where = "--context",
                 .expected = fmt::format("at most {} tokens, the model's", spec.max_positions),
                 .found = fmt::format("{}", context),
                 .mend = ""});
  const Sizes sizes{.T = T,
                    .max_context = models::context_bucket(context),
                    .context = context,
                    .norm_eps = spec.norm_eps,
                    .rope = spec.rope};
  ProblemList list;
  add_norm("norms", T, spec.H, spec.norm_eps, DType::kBF16, list);
  add_linears(spec, inventory, T, list);
  if (const auto* mla = std::get_if<models::MlaSpec>(&spec.attention)) add_mla(*mla, sizes, list);
  if (const auto* gqa = std::get_if<models::GqaSpec>(&spec.attention)) add_gqa(*gqa, sizes, list);
  if (spec.moe) add_experts(*spec.moe, inventory, T, spec.H, list);
  add_silu(spec, T, list);
  list.add("sampling", ops::SampleProblem{.B = 1, .V = spec.V});
  return list.take();
}

std::vector<ops::Problem> run_problems(const models::DecoderSpec& spec, const Inventory& inventory,
                                       int64_t chunk, int64_t context) {
  std::vector<ops::Problem> problems;
  const auto add = [&](int64_t T, int64_t max_context) {
    for (const ModelProblem& problem : model_problems(spec, inventory, T, max_context))
      if (std::ranges::find(problems, problem.problem) == problems.end()) problems.push_back(problem.problem);
  };
  // Where a kernel, a tile or a split changes with a size, it does so near a power of two.
  for (int64_t bucket = models::context_bucket(1); bucket <= models::context_bucket(context); bucket *= 2)
    for (int64_t T = 1; T < 2 * chunk; T *= 2) add(std::min(T, chunk), std::min(bucket, context));
  return problems;
}

}  // namespace sinter::workbench
