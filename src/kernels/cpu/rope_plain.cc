#include "kernels/cpu/elements.h"
#include "kernels/kernel.h"

namespace sinter::kernels::cpu {
namespace {

// One pair of elements of every head, so that an angle's sine is computed once per token.
template <typename T>
void turn(const ops::RopeProblem& p, const ops::RopeArgs& a, int64_t t, float (*from)(T), T (*to)(float)) {
  const float* inv_freq = a.inv_freq.data_as<float>();
  const auto position = static_cast<float>(a.positions.data_as<int32_t>()[t]);
  const int64_t half = p.R / 2;
  for (int64_t i = 0; i < half; ++i) {
    const float angle = position * inv_freq[i];
    const float cos = std::cos(angle) * p.scale;
    const float sin = std::sin(angle) * p.scale;
    T* first = a.x.row<T>(t) + (p.interleaved ? 2 * i : i);
    T* second = first + (p.interleaved ? 1 : half);
    for (int64_t n = 0; n < p.N; ++n, first += a.x.stride(1), second += a.x.stride(1)) {
      const float x = from(*first), y = from(*second);
      *first = to(x * cos - y * sin);
      *second = to(x * sin + y * cos);
    }
  }
}

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<ops::RopeProblem>(problem);
  const auto& a = std::get<ops::RopeArgs>(args);
  const auto same = [](float value) { return value; };
  for_rows(context.pool, p.T, [&](int64_t t) {
    if (p.x == DType::kF32)
      turn<float>(p, a, t, same, same);
    else
      turn<uint16_t>(p, a, t, numerics::from_bf16, numerics::to_bf16);
  });
}

}  // namespace

extern const KernelInfo rope_plain = {
    .name = "cpu.rope_plain",
    .op = ops::Op::kRope,
    .is_oracle = true,
    .supports = [](const ops::Problem&, const DeviceInfo&) { return Support::yes(); },
    .launch = launch,
};

}  // namespace sinter::kernels::cpu
