#include "kernels/cuda/launch.h"
#include "kernels/cuda/token_counts.h"
#include "kernels/gpu/head_linear_params.h"
#include "kernels/gpu/tile_product_params.h"

namespace sinter::kernels::cuda {
namespace {

using Problem = ops::HeadLinearProblem;

Support supports(const ops::Problem& problem, const DeviceInfo& device) {
  const auto& p = std::get<Problem>(problem);
  if (p.x != DType::kBF16 || p.weight != DType::kBF16)
    return Support::no(
        fmt::format("needs bf16 activations and weights, these are {} and {}", name(p.x), name(p.weight)));
  return all_of({fits_32_bits({{"N", p.N}, {"K", p.K}}),
                 fits_grid("the tokens", blocks(p.T, tile_columns(p.T))), fits_grid("the heads", p.Q),
                 fits_shared(gpu::tile_shared_bytes(tile_columns(p.T)), device)});
}

GpuProgram program(const Problem& p) {
  return {"cuda/head_linear_prefill.cu",
          {{"SINTER_Y", element_of(p.y)}, {"SINTER_COLUMNS", std::to_string(tile_columns(p.T))}}};
}

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<Problem>(problem);
  const auto& a = std::get<ops::HeadLinearArgs>(args);
  const gpu::HeadLinearParams params = {narrow(p.T),   narrow(p.N),   narrow(p.K),  a.x.stride(0),
                                        a.x.stride(1), a.y.stride(0), a.y.stride(1)};
  const int columns = tile_columns(p.T);
  cuda::launch(context, program(p), "head_linear_prefill",
               shape_of({blocks(p.N, gpu::kTileRows), blocks(p.T, columns), blocks(p.Q, 1)},
                        gpu::kTileThreads, gpu::tile_shared_bytes(columns)),
               memory(a.x), memory(a.weight), memory(a.y), params);
}

}  // namespace

extern const KernelInfo head_linear_prefill = {
    .name = "cuda.head_linear_prefill",
    .op = ops::Op::kHeadLinear,
    .processor = Processor::kGpu,
    .supports = supports,
    .programs = [](const ops::Problem& problem, const DeviceInfo&,
                   const Config&) { return std::vector{program(std::get<Problem>(problem))}; },
    .launch = launch,
};

}  // namespace sinter::kernels::cuda
