#include "kernels/cpu/softmax_sum.h"
#include "kernels/cpu/workspace_parts.h"
#include "kernels/kernel.h"

namespace sinter::kernels::cpu {
namespace {

struct Parts {
  float* q;    // [T * Q, C + R]
  float* sum;  // [T * Q, C]
};

Parts lay_out(const ops::MlaAttentionProblem& p, WorkspaceParts& parts) {
  return {parts.take<float>(p.T * p.Q * (p.C + p.R)), parts.take<float>(p.T * p.Q * p.C)};
}

size_t workspace(const ops::Problem& problem, const Config&) {
  WorkspaceParts parts;
  lay_out(std::get<ops::MlaAttentionProblem>(problem), parts);
  return parts.size_bytes();
}

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<ops::MlaAttentionProblem>(problem);
  const auto& a = std::get<ops::MlaAttentionArgs>(args);
  WorkspaceParts carved(context.workspace.data());
  const Parts parts = lay_out(p, carved);
  for_rows(context.pool, p.T * p.Q, [&](int64_t item) {
    const int64_t t = item / p.Q, head = item % p.Q;
    float* q = parts.q + item * (p.C + p.R);
    float* sum = parts.sum + item * p.C;
    load(p.q, row(a.q_latent, t, head), 0, p.C, q);
    load(p.q, row(a.q_pe, t, head), 0, p.R, q + p.C);
    const PagedRows rows(a.batch, p.P, t);
    const AttendedRows attended(rows, a.indices, t);
    const auto cache_row = [&](int64_t i) { return row(a.cache, rows.page(i), rows.offset(i)); };
    softmax_sum(
        attended.count(), [&](int64_t i) { return attended.position(i); },
        [&](int64_t i) { return dot_row(q, p.cache, cache_row(i), 0, p.C + p.R) * p.scale; }, cache_row,
        p.cache, p.C, sum);
    store(p.q, sum, 0, p.C, row(a.y, t, head));
  });
}

}  // namespace

extern const KernelInfo mla_attention_plain = {
    .name = "cpu.mla_attention_plain",
    .op = ops::Op::kMlaAttention,
    .is_oracle = true,
    .supports = [](const ops::Problem&, const DeviceInfo&) { return Support::yes(); },
    .workspace_bytes = workspace,
    .launch = launch,
};

}  // namespace sinter::kernels::cpu
