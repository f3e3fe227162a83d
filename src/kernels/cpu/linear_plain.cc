#include "kernels/cpu/elements.h"
#include "kernels/cpu/row_dots.h"
#include "kernels/kernel.h"

namespace sinter::kernels::cpu {
namespace {

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<ops::LinearProblem>(problem);
  const auto& a = std::get<ops::LinearArgs>(args);
  const ops::Weight& weight = a.weight->matrix();
  // Columns of y are shared out: each worker decodes its own weight rows.
  for_rows(context.pool, p.N, [&](int64_t n) {
    for (int64_t begin = 0; begin < p.T; begin += kRowsAtOnce) {
      const int64_t count = std::min(kRowsAtOnce, p.T - begin);
      const std::byte* x[kRowsAtOnce];
      float sums[kRowsAtOnce];
      for (int64_t j = 0; j < count; ++j) x[j] = row(a.x, begin + j);
      row_dots(weight, n, p.x, {x, static_cast<size_t>(count)}, sums);
      for (int64_t j = 0; j < count; ++j) {
        std::byte* y = row(a.y, begin + j);
        float value = sums[j];
        if (p.has_bias) value += a.bias.data_as<float>()[n];
        if (p.accumulate) {
          float before;
          load(p.y, y, n, 1, &before);
          value += before;
        }
        store(p.y, &value, n, 1, y);
      }
    }
  });
}

}  // namespace

extern const KernelInfo linear_plain = {
    .name = "cpu.linear_plain",
    .op = ops::Op::kLinear,
    .is_oracle = true,
    .layout = ops::WeightLayout::kInPlace,
    .supports = [](const ops::Problem&, const DeviceInfo&) { return Support::yes(); },
    .launch = launch,
};

}  // namespace sinter::kernels::cpu
