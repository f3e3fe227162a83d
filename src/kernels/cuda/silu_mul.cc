#include "kernels/cuda/launch.h"
#include "kernels/gpu/silu_mul_params.h"

namespace sinter::kernels::cuda {
namespace {

using Problem = ops::SiluMulProblem;

Support supports(const ops::Problem& problem, const DeviceInfo&) {
  const auto& p = std::get<Problem>(problem);
  return fits_32_bits(
      {{"T", p.T}, {"I", p.I}, {"the number of blocks", p.T * blocks(p.I, gpu::kSiluMulColumns)}});
}

GpuProgram program(const Problem& p) {
  return {"cuda/silu_mul.cu", {{"SINTER_X", element_of(p.x)}, {"SINTER_Y", element_of(p.y)}}};
}

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<Problem>(problem);
  const auto& a = std::get<ops::SiluMulArgs>(args);
  const gpu::SiluMulParams params = {narrow(p.I), a.gate.stride(0), a.up.stride(0), a.y.stride(0)};
  const Dim3 grid = {static_cast<uint32_t>(p.T) * blocks(p.I, gpu::kSiluMulColumns)};
  cuda::launch(context, program(p), "silu_mul", shape_of(grid, 256), memory(a.gate), memory(a.up),
               memory(a.y), params);
}

}  // namespace

extern const KernelInfo silu_mul = {
    .name = "cuda.silu_mul",
    .op = ops::Op::kSiluMul,
    .processor = Processor::kGpu,
    .supports = supports,
    .programs = [](const ops::Problem& problem, const DeviceInfo&,
                   const Config&) { return std::vector{program(std::get<Problem>(problem))}; },
    .launch = launch,
};

}  // namespace sinter::kernels::cuda
