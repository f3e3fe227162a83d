#include "kernels/cpu/elements.h"
#include "kernels/cpu/row_dots.h"
#include "kernels/kernel.h"

namespace sinter::kernels::cpu {
namespace {

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<ops::HeadLinearProblem>(problem);
  const auto& a = std::get<ops::HeadLinearArgs>(args);
  const ops::Weight weight{
      .format = p.weight == DType::kF32 ? ops::WeightFormat::kF32 : ops::WeightFormat::kBF16,
      .N = p.Q * p.N,
      .K = p.K,
      .data = a.weight.reshape({p.Q * p.N, p.K}),
      .scale = {},
      .input_scale = {},
      .name = {},
  };
  for_rows(context.pool, p.Q * p.N, [&](int64_t item) {
    const int64_t q = item / p.N;
    for (int64_t begin = 0; begin < p.T; begin += kRowsAtOnce) {
      const int64_t count = std::min(kRowsAtOnce, p.T - begin);
      const std::byte* x[kRowsAtOnce];
      float sums[kRowsAtOnce];
      for (int64_t j = 0; j < count; ++j) x[j] = row(a.x, begin + j, q);
      row_dots(weight, item, p.x, {x, static_cast<size_t>(count)}, sums);
      for (int64_t j = 0; j < count; ++j) store(p.y, &sums[j], item % p.N, 1, row(a.y, begin + j, q));
    }
  });
}

}  // namespace

extern const KernelInfo head_linear_plain = {
    .name = "cpu.head_linear_plain",
    .op = ops::Op::kHeadLinear,
    .is_oracle = true,
    .supports = [](const ops::Problem&, const DeviceInfo&) { return Support::yes(); },
    .launch = launch,
};

}  // namespace sinter::kernels::cpu
