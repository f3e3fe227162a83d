#include "kernels/cuda/launch.h"
#include "kernels/gpu/rope_params.h"

namespace sinter::kernels::cuda {
namespace {

using Problem = ops::RopeProblem;

Support supports(const ops::Problem& problem, const DeviceInfo&) {
  const auto& p = std::get<Problem>(problem);
  if (p.R > gpu::kMaxRotary)
    return Support::no(fmt::format("needs at most {} rotary dimensions, here {}", gpu::kMaxRotary, p.R));
  return fits_32_bits({{"T", p.T}, {"N x R", p.N * p.R}});
}

GpuProgram program(const Problem& p) { return {"cuda/rope.cu", {{"SINTER_X", element_of(p.x)}}}; }

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<Problem>(problem);
  const auto& a = std::get<ops::RopeArgs>(args);
  const gpu::RopeParams params = {narrow(p.N), narrow(p.R),   p.interleaved ? 1 : 0,
                                  p.scale,     a.x.stride(0), a.x.stride(1)};
  cuda::launch(context, program(p), "rope", shape_of({blocks(p.T, 1)}, row_threads(p.N * p.R / 2)),
               memory(a.x), memory(a.positions), memory(a.inv_freq), params);
}

}  // namespace

extern const KernelInfo rope = {
    .name = "cuda.rope",
    .op = ops::Op::kRope,
    .processor = Processor::kGpu,
    .supports = supports,
    .programs = [](const ops::Problem& problem, const DeviceInfo&,
                   const Config&) { return std::vector{program(std::get<Problem>(problem))}; },
    .launch = launch,
};

}  // namespace sinter::kernels::cuda
