#include "kernels/cuda/launch.h"
#include "kernels/gpu/cache_write_params.h"

namespace sinter::kernels::cuda {
namespace {

using Problem = ops::CacheWriteProblem;

Support supports(const ops::Problem& problem, const DeviceInfo&) {
  const auto& p = std::get<Problem>(problem);
  return fits_32_bits({{"T", p.T}, {"W", p.W}, {"P", p.P}});
}

GpuProgram program(const Problem& p) {
  return {"cuda/cache_write.cu", {{"SINTER_X", element_of(p.x)}, {"SINTER_CACHE", element_of(p.cache)}}};
}

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<Problem>(problem);
  const auto& a = std::get<ops::CacheWriteArgs>(args);
  const gpu::CacheWriteParams params = {narrow(p.W), narrow(p.P), a.x.stride(0),
                                        a.batch.page_table.stride(0)};
  cuda::launch(context, program(p), "cache_write", shape_of({blocks(p.T, 1)}, row_threads(p.W)), memory(a.x),
               memory(a.cache), memory(a.batch.page_table), memory(a.batch.seq_idx),
               memory(a.batch.positions), params);
}

}  // namespace

extern const KernelInfo cache_write = {
    .name = "cuda.cache_write",
    .op = ops::Op::kCacheWrite,
    .processor = Processor::kGpu,
    .supports = supports,
    .programs = [](const ops::Problem& problem, const DeviceInfo&,
                   const Config&) { return std::vector{program(std::get<Problem>(problem))}; },
    .launch = launch,
};

}  // namespace sinter::kernels::cuda
