#include "kernels/cpu/elements.h"
#include "kernels/kernel.h"

namespace sinter::kernels::cpu {
namespace {

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<ops::EmbeddingProblem>(problem);
  const auto& a = std::get<ops::EmbeddingArgs>(args);
  const int32_t* ids = a.ids.data_as<int32_t>();
  for_rows(context.pool, p.T, [&](int64_t t) {
    for_blocks(0, p.H, [&](int64_t begin, int64_t count) {
      float values[kBlock];
      load(p.weight, row(a.weight, ids[t]), begin, count, values);
      store(p.y, values, begin, count, row(a.y, t));
    });
  });
}

}  // namespace

extern const KernelInfo embedding_plain = {
    .name = "cpu.embedding_plain",
    .op = ops::Op::kEmbedding,
    .is_oracle = true,
    .supports = [](const ops::Problem&, const DeviceInfo&) { return Support::yes(); },
    .launch = launch,
};

}  // namespace sinter::kernels::cpu
