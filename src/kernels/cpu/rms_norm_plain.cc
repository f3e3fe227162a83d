#include "kernels/cpu/elements.h"
#include "kernels/kernel.h"

namespace sinter::kernels::cpu {
namespace {

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<ops::RmsNormProblem>(problem);
  const auto& a = std::get<ops::RmsNormArgs>(args);
  const float* weight = a.weight.data_as<float>();
  for_rows(context.pool, p.N, [&](int64_t n) {
    const std::byte* x = row(a.x, n);
    float values[kBlock];
    LaneSum squares;
    for_blocks(0, p.H, [&](int64_t begin, int64_t count) {
      load(p.x, x, begin, count, values);
      squares.add_products(values, values, count);
    });
    const float scale = 1 / std::sqrt(squares.total() / static_cast<float>(p.H) + p.eps);
    for_blocks(0, p.H, [&](int64_t begin, int64_t count) {
      load(p.x, x, begin, count, values);
      for (int64_t i = 0; i < count; ++i) values[i] = values[i] * scale * weight[begin + i];
      store(p.y, values, begin, count, row(a.y, n));
    });
  });
}

}  // namespace

extern const KernelInfo rms_norm_plain = {
    .name = "cpu.rms_norm_plain",
    .op = ops::Op::kRmsNorm,
    .is_oracle = true,
    .supports = [](const ops::Problem&, const DeviceInfo&) { return Support::yes(); },
    .launch = launch,
};

}  // namespace sinter::kernels::cpu
