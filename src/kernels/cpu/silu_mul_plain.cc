#include "kernels/cpu/elements.h"
#include "kernels/kernel.h"

namespace sinter::kernels::cpu {
namespace {

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<ops::SiluMulProblem>(problem);
  const auto& a = std::get<ops::SiluMulArgs>(args);
  // Blocks of one row, not rows: a decode step has one row of many columns.
  const int64_t num_blocks = (p.I + kBlock - 1) / kBlock;
  for_rows(context.pool, p.T * num_blocks, [&](int64_t item) {
    const int64_t t = item / num_blocks;
    const int64_t begin = item % num_blocks * kBlock;
    const int64_t count = std::min(kBlock, p.I - begin);
    float gate[kBlock], up[kBlock];
    load(p.x, row(a.gate, t), begin, count, gate);
    load(p.x, row(a.up, t), begin, count, up);
    for (int64_t i = 0; i < count; ++i) up[i] *= silu(gate[i]);
    store(p.y, up, begin, count, row(a.y, t));
  });
}

}  // namespace

extern const KernelInfo silu_mul_plain = {
    .name = "cpu.silu_mul_plain",
    .op = ops::Op::kSiluMul,
    .is_oracle = true,
    .supports = [](const ops::Problem&, const DeviceInfo&) { return Support::yes(); },
    .launch = launch,
};

}  // namespace sinter::kernels::cpu
