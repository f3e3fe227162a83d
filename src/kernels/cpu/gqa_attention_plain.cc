#include "kernels/cpu/softmax_sum.h"
#include "kernels/cpu/workspace_parts.h"
#include "kernels/kernel.h"

namespace sinter::kernels::cpu {
namespace {

struct Parts {
  float* q;    // [T * Q, D]
  float* sum;  // [T * Q, Dv]
};

Parts lay_out(const ops::GqaAttentionProblem& p, WorkspaceParts& parts) {
  return {parts.take<float>(p.T * p.Q * p.D), parts.take<float>(p.T * p.Q * p.Dv)};
}

size_t workspace(const ops::Problem& problem, const Config&) {
  WorkspaceParts parts;
  lay_out(std::get<ops::GqaAttentionProblem>(problem), parts);
  return parts.size_bytes();
}

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<ops::GqaAttentionProblem>(problem);
  const auto& a = std::get<ops::GqaAttentionArgs>(args);
  WorkspaceParts carved(context.workspace.data());
  const Parts parts = lay_out(p, carved);
  const auto element_bytes = static_cast<int64_t>(size_bytes(p.cache));
  for_rows(context.pool, p.T * p.Q, [&](int64_t item) {
    const int64_t t = item / p.Q, head = item % p.Q;
    const int64_t group = head / (p.Q / p.G);
    float* q = parts.q + item * p.D;
    float* sum = parts.sum + item * p.Dv;
    load(p.q, row(a.q, t, head), 0, p.D, q);
    const PagedRows rows(a.batch, p.P, t);
    const AttendedRows attended(rows, a.indices, t);
    const auto key = [&](int64_t i) {
      return row(a.k_cache, rows.page(i), rows.offset(i)) + group * p.D * element_bytes;
    };
    const auto value = [&](int64_t i) {
      return row(a.v_cache, rows.page(i), rows.offset(i)) + group * p.Dv * element_bytes;
    };
    softmax_sum(
        attended.count(), [&](int64_t i) { return attended.position(i); },
        [&](int64_t i) { return dot_row(q, p.cache, key(i), 0, p.D) * p.scale; }, value, p.cache, p.Dv, sum);
    store(p.q, sum, 0, p.Dv, row(a.y, t, head));
  });
}

}  // namespace

extern const KernelInfo gqa_attention_plain = {
    .name = "cpu.gqa_attention_plain",
    .op = ops::Op::kGqaAttention,
    .is_oracle = true,
    .supports = [](const ops::Problem&, const DeviceInfo&) { return Support::yes(); },
    .workspace_bytes = workspace,
    .launch = launch,
};

}  // namespace sinter::kernels::cpu
