#include "kernels/cuda/launch.h"
#include "kernels/gpu/norm_params.h"

namespace sinter::kernels::cuda {
namespace {

using Problem = ops::RmsNormProblem;

Support supports(const ops::Problem& problem, const DeviceInfo&) {
  const auto& p = std::get<Problem>(problem);
  return fits_32_bits({{"N", p.N}, {"H", p.H}});
}

GpuProgram program(const Problem& p) {
  return {"cuda/rms_norm.cu", {{"SINTER_X", element_of(p.x)}, {"SINTER_Y", element_of(p.y)}}};
}

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<Problem>(problem);
  const auto& a = std::get<ops::RmsNormArgs>(args);
  const gpu::NormParams params = {narrow(p.H), p.eps, a.x.stride(0), a.y.stride(0)};
  cuda::launch(context, program(p), "rms_norm", shape_of({blocks(p.N, 1)}, gpu::norm_threads(p.H)),
               memory(a.x), memory(a.weight), memory(a.y), params);
}

}  // namespace

extern const KernelInfo rms_norm = {
    .name = "cuda.rms_norm",
    .op = ops::Op::kRmsNorm,
    .processor = Processor::kGpu,
    .supports = supports,
    .programs = [](const ops::Problem& problem, const DeviceInfo&,
                   const Config&) { return std::vector{program(std::get<Problem>(problem))}; },
    .launch = launch,
};

}  // namespace sinter::kernels::cuda
