#include "kernels/cuda/launch.h"
#include "kernels/cuda/token_counts.h"
#include "kernels/gpu/head_linear_params.h"
#include "kernels/gpu/row_product_params.h"

namespace sinter::kernels::cuda {
namespace {

using Problem = ops::HeadLinearProblem;

Support supports(const ops::Problem& problem, const DeviceInfo&) {
  const auto& p = std::get<Problem>(problem);
  if (!is_float_or_bf16(p.weight))
    return Support::no(fmt::format("needs f32 or bf16 weights, these are {}", name(p.weight)));
  if (p.T > kMostRowTokens && p.x == DType::kBF16 && p.weight == DType::kBF16)
    return Support::no(
        fmt::format("for more than {} tokens cuda.head_linear_prefill is faster", kMostRowTokens));
  return all_of({fits_32_bits({{"N", p.N}, {"K", p.K}}),
                 fits_grid("the tokens", blocks(p.T, 8 * row_tiles(p.T))), fits_grid("the heads", p.Q)});
}

GpuProgram program(const Problem& p) {
  return {"cuda/head_linear_decode.cu",
          {{"SINTER_FORMAT", p.weight == DType::kF32 ? "F32Format" : "Bf16Format"},
           {"SINTER_X", element_of(p.x)},
           {"SINTER_Y", element_of(p.y)},
           {"SINTER_TILES", std::to_string(row_tiles(p.T))}}};
}

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<Problem>(problem);
  const auto& a = std::get<ops::HeadLinearArgs>(args);
  const gpu::HeadLinearParams params = {narrow(p.T),   narrow(p.N),   narrow(p.K),  a.x.stride(0),
                                        a.x.stride(1), a.y.stride(0), a.y.stride(1)};
  const Dim3 grid = {blocks(p.N, gpu::kRowsAtOnce), blocks(p.T, 8 * row_tiles(p.T)), blocks(p.Q, 1)};
  const int lane_k = p.weight == DType::kF32 ? 4 : 8;
  cuda::launch(context, program(p), "head_linear_decode",
               shape_of(grid, gpu::row_product_threads(p.K, lane_k)), memory(a.x), memory(a.weight),
               memory(a.y), params);
}

}  // namespace

extern const KernelInfo head_linear_decode = {
    .name = "cuda.head_linear_decode",
    .op = ops::Op::kHeadLinear,
    .processor = Processor::kGpu,
    .supports = supports,
    .programs = [](const ops::Problem& problem, const DeviceInfo&,
                   const Config&) { return std::vector{program(std::get<Problem>(problem))}; },
    .launch = launch,
};

}  // namespace sinter::kernels::cuda
