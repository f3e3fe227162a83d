#include "kernels/cpu/elements.h"
#include "kernels/kernel.h"

namespace sinter::kernels::cpu {
namespace {

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<ops::LayerNormProblem>(problem);
  const auto& a = std::get<ops::LayerNormArgs>(args);
  const float* weight = a.weight.data_as<float>();
  const float* bias = a.bias.data_as<float>();
  const auto H = static_cast<float>(p.H);
  for_rows(context.pool, p.N, [&](int64_t n) {
    const std::byte* x = row(a.x, n);
    float values[kBlock];
    LaneSum sum;
    for_blocks(0, p.H, [&](int64_t begin, int64_t count) {
      load(p.x, x, begin, count, values);
      sum.add(values, count);
    });
    const float mean = sum.total() / H;
    // A second pass: mean(x^2) - mean^2 cancels when the mean is large.
    LaneSum squares;
    for_blocks(0, p.H, [&](int64_t begin, int64_t count) {
      load(p.x, x, begin, count, values);
      for (int64_t i = 0; i < count; ++i) values[i] -= mean;
      squares.add_products(values, values, count);
    });
    const float scale = 1 / std::sqrt(squares.total() / H + p.eps);
    for_blocks(0, p.H, [&](int64_t begin, int64_t count) {
      load(p.x, x, begin, count, values);
      for (int64_t i = 0; i < count; ++i)
        values[i] = (values[i] - mean) * scale * weight[begin + i] + bias[begin + i];
      store(p.y, values, begin, count, row(a.y, n));
    });
  });
}

}  // namespace

extern const KernelInfo layer_norm_plain = {
    .name = "cpu.layer_norm_plain",
    .op = ops::Op::kLayerNorm,
    .is_oracle = true,
    .supports = [](const ops::Problem&, const DeviceInfo&) { return Support::yes(); },
    .launch = launch,
};

}  // namespace sinter::kernels::cpu
