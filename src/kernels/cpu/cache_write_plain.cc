#include "kernels/cpu/elements.h"
#include "kernels/cpu/paged_rows.h"
#include "kernels/kernel.h"

namespace sinter::kernels::cpu {
namespace {

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<ops::CacheWriteProblem>(problem);
  const auto& a = std::get<ops::CacheWriteArgs>(args);
  for_rows(context.pool, p.T, [&](int64_t t) {
    const PagedRows rows(a.batch, p.P, t);
    std::byte* target = row(a.cache, rows.page(rows.num_visible() - 1), rows.offset(rows.num_visible() - 1));
    for_blocks(0, p.W, [&](int64_t begin, int64_t count) {
      float values[kBlock];
      load(p.x, row(a.x, t), begin, count, values);
      store(p.cache, values, begin, count, target);
    });
  });
}

}  // namespace

extern const KernelInfo cache_write_plain = {
    .name = "cpu.cache_write_plain",
    .op = ops::Op::kCacheWrite,
    .is_oracle = true,
    .supports = [](const ops::Problem&, const DeviceInfo&) { return Support::yes(); },
    .launch = launch,
};

}  // namespace sinter::kernels::cpu
