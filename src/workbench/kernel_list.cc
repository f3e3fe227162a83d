#include "workbench/kernel_list.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

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

void add_linears(const Inventory& inventory, int64_t T, ProblemList& list) {
  for (size_t i = 0; i < inventory.tensors.size(); ++i) {
    const TensorSpec& tensor = inventory.tensors[i];
    // kv_b is split by head and used in the absorbed form.
    if (tensor.kind != TensorSpec::Kind::kLinear || tensor.part == Part::kRouted ||
        tensor.name.ends_with(".kv_b_proj"))
      continue;
    const bool is_f32 = tensor.part == Part::kRouter || tensor.part == Part::kHead ||
                        tensor.name.ends_with(".indexer.weights_proj");
    const bool is_residual = tensor.name.ends_with(".o_proj") || tensor.name.ends_with(".down_proj");
    list.add(label(tensor), ops::LinearProblem{.T = T,
                                               .N = tensor.N,
                                               .K = tensor.K,
                                               .format = inventory.formats[i],
                                               .y = is_f32 || is_residual ? DType::kF32 : DType::kBF16,
                                               .accumulate = is_residual});
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
                                                  .accumulate = true});
    gate_up.reset();
    down.reset();
  }
}

void add_mla(const models::MlaSpec& mla, int64_t T, int64_t context, ProblemList& list) {
  list.add("kv_b_proj, absorbed into q",
           ops::HeadLinearProblem{.T = T, .Q = mla.Q, .N = mla.C, .K = mla.nope});
  list.add("kv_b_proj, absorbed into the output",
           ops::HeadLinearProblem{.T = T, .Q = mla.Q, .N = mla.Dv, .K = mla.C});
  if (mla.indexer)
    list.add("indexer choice", ops::IndexerProblem{.T = T,
                                                   .B = 1,
                                                   .heads = mla.indexer->heads,
                                                   .D = mla.indexer->D,
                                                   .P = kPageTokens,
                                                   .max_context = context,
                                                   .topk = mla.indexer->topk});
  list.add("attention", ops::MlaAttentionProblem{.T = T,
                                                 .B = 1,
                                                 .Q = mla.Q,
                                                 .C = mla.C,
                                                 .R = mla.R,
                                                 .P = kPageTokens,
                                                 .max_context = context,
                                                 .index_topk = mla.indexer ? mla.indexer->topk : 0,
                                                 .scale = mla.softmax_scale});
}

// One problem of each op and weight format, at GLM-5's sizes.
std::vector<ops::Problem> example_problems(ops::Op op) {
  constexpr std::array kFormats = {WeightFormat::kNvfp4,    WeightFormat::kBF16,  WeightFormat::kFp8Tensor,
                                   WeightFormat::kFp8Block, WeightFormat::kMxfp4, WeightFormat::kF32,
                                   WeightFormat::kF16};
  std::vector<ops::Problem> problems;
  switch (op) {
    case ops::Op::kEmbedding: return {ops::EmbeddingProblem{.T = 1, .V = 154880, .H = 6144}};
    case ops::Op::kRmsNorm: return {ops::RmsNormProblem{.N = 1, .H = 6144, .eps = 1e-5f}};
    case ops::Op::kLayerNorm: return {ops::LayerNormProblem{.N = 1, .H = 128, .eps = 1e-6f}};
    case ops::Op::kRope: return {ops::RopeProblem{.T = 1, .N = 64, .R = 64, .interleaved = true}};
    case ops::Op::kLinear:
      for (const WeightFormat format : kFormats)
        problems.push_back(ops::LinearProblem{.T = 1, .N = 6144, .K = 2048, .format = format});
      return problems;
    case ops::Op::kHeadLinear: return {ops::HeadLinearProblem{.T = 1, .Q = 64, .N = 512, .K = 192}};
    case ops::Op::kSiluMul: return {ops::SiluMulProblem{.T = 1, .I = 2048}};
    case ops::Op::kRouter: return {ops::RouterProblem{.T = 1, .E = 256, .A = 8, .has_bias = true}};
    case ops::Op::kMoeFfn:
      for (const WeightFormat format : kFormats)
        problems.push_back(ops::MoeFfnProblem{
            .T = 1, .H = 6144, .I = 2048, .E = 256, .A = 8, .format = format, .format_down = format});
      return problems;
    case ops::Op::kMlaAttention:
      return {ops::MlaAttentionProblem{.T = 1,
                                       .B = 1,
                                       .Q = 64,
                                       .C = 512,
                                       .R = 64,
                                       .P = kPageTokens,
                                       .max_context = 4096,
                                       .scale = 0.0625f}};
    case ops::Op::kGqaAttention:
      return {ops::GqaAttentionProblem{.T = 1,
                                       .B = 1,
                                       .Q = 96,
                                       .G = 8,
                                       .D = 128,
                                       .Dv = 128,
                                       .P = kPageTokens,
                                       .max_context = 4096,
                                       .scale = 0.088f}};
    case ops::Op::kIndexer:
      return {ops::IndexerProblem{
          .T = 1, .B = 1, .heads = 32, .D = 128, .P = kPageTokens, .max_context = 4096, .topk = 2048}};
    case ops::Op::kCacheWrite: return {ops::CacheWriteProblem{.T = 1, .B = 1, .W = 576, .P = kPageTokens}};
    case ops::Op::kSample: return {ops::SampleProblem{.B = 1, .V = 154880}};
  }
  return problems;
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
  ProblemList list;
  list.add("norms", ops::RmsNormProblem{.N = T, .H = spec.H, .eps = static_cast<float>(spec.norm_eps)});
  add_linears(inventory, T, list);
  if (const auto* mla = std::get_if<models::MlaSpec>(&spec.attention)) {
    add_mla(*mla, T, context, list);
  } else {
    const auto& gqa = std::get<models::GqaSpec>(spec.attention);
    list.add("attention", ops::GqaAttentionProblem{.T = T,
                                                   .B = 1,
                                                   .Q = gqa.Q,
                                                   .G = gqa.G,
                                                   .D = gqa.D,
                                                   .Dv = gqa.D,
                                                   .P = kPageTokens,
                                                   .max_context = context,
                                                   .scale = 1 / std::sqrt(static_cast<float>(gqa.D))});
  }
  if (spec.moe) add_experts(*spec.moe, inventory, T, spec.H, list);
  list.add("sampling", ops::SampleProblem{.B = 1, .V = spec.V});
  return list.take();
}

std::vector<KernelRow> list_kernels(const DeviceInfo& device, std::optional<ops::Op> op) {
  std::vector<KernelRow> rows;
  for (const kernels::KernelInfo* kernel : kernels::registry()) {
    if (op && kernel->op != *op) continue;
    KernelRow row{kernel, false, {}};
    // Of the examples most are not what the row is for, and all say the same of it; the rarest reason is
    // that of its own kind of problem.
    std::map<std::string, int> num_said;
    for (const ops::Problem& problem : example_problems(kernel->op)) {
      const kernels::Support support = kernels::supports(*kernel, problem, device);
      row.can_run |= support.ok;
      if (!support) ++num_said[support.reason];
    }
    if (!row.can_run && !num_said.empty())
      row.reason =
          std::ranges::min_element(num_said, {}, [](const auto& said) { return said.second; })->first;
    rows.push_back(std::move(row));
  }
  return rows;
}

const dispatch::Verdict* ProblemVerdicts::chosen() const {
  const auto it = std::ranges::find_if(verdicts, &dispatch::Verdict::chosen);
  return it == verdicts.end() ? nullptr : &*it;
}

std::vector<ProblemVerdicts> explain_model(const dispatch::Context& context,
                                           std::vector<ModelProblem> problems) {
  std::vector<ProblemVerdicts> result;
  for (ModelProblem& problem : problems) {
    std::vector<dispatch::Verdict> verdicts = context.explain(problem.problem);
    result.push_back({std::move(problem), std::move(verdicts)});
  }
  return result;
}

ops::Op find_op(std::string_view name_wanted) {
  std::string names;
  for (int i = 0; i < ops::kNumOps; ++i) {
    const auto op = static_cast<ops::Op>(i);
    if (name(op) == name_wanted) return op;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name(op));
  }
  throw Error(ErrorKind::kUsage,
              {.where = "op", .expected = names, .found = fmt::format("'{}'", name_wanted), .mend = ""});
}

}  // namespace sinter::workbench
