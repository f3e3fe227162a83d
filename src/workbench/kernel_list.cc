#include "workbench/kernel_list.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/error.h"

namespace sinter::workbench {
namespace {

using ops::WeightFormat;

constexpr int64_t kPageTokens = 64;

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
