#include "kernels/cuda/launch.h"
#include "kernels/cuda/token_counts.h"
#include "kernels/cuda/weight_rows.h"
#include "kernels/gpu/linear_params.h"
#include "kernels/gpu/tile_product_params.h"

namespace sinter::kernels::cuda {
namespace {

using Problem = ops::LinearProblem;

Support supports(const ops::Problem& problem, const DeviceInfo& device) {
  const auto& p = std::get<Problem>(problem);
  if (p.x != DType::kBF16) return Support::no("needs bf16 activations, these are f32");
  if (!has_tile_product(p.format))
    return Support::no(fmt::format("needs bf16, FP8, NVFP4 or MXFP4 weights, these are {}", name(p.format)));
  return all_of({fits_32_bits({{"N", p.N}, {"K", p.K}}),
                 fits_grid("the tokens", blocks(p.T, tile_columns(p.T))),
                 fits_shared(gpu::tile_shared_bytes(tile_columns(p.T)), device)});
}

GpuProgram program(const Problem& p) {
  return {"cuda/linear_prefill.cu",
          {{"SINTER_FORMAT", format_of(p.format)},
           {"SINTER_Y", element_of(p.y)},
           {"SINTER_COLUMNS", std::to_string(tile_columns(p.T))}}};
}

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<Problem>(problem);
  const auto& a = std::get<ops::LinearArgs>(args);
  const gpu::LinearParams params = {narrow(p.T),          narrow(p.N),   narrow(p.K),
                                    p.accumulate ? 1 : 0, a.x.stride(0), a.y.stride(0)};
  const int columns = tile_columns(p.T);
  cuda::launch(context, program(p), "linear_prefill",
               shape_of({blocks(p.N, gpu::kTileRows), blocks(p.T, columns)}, gpu::kTileThreads,
                        gpu::tile_shared_bytes(columns)),
               memory(a.x), packed_matrix(*a.weight), memory(a.bias), memory(a.y), params);
}

}  // namespace

extern const KernelInfo linear_prefill = {
    .name = "cuda.linear_prefill",
    .op = ops::Op::kLinear,
    .processor = Processor::kGpu,
    .layout = ops::WeightLayout::kGpuRows,
    .supports = supports,
    .packed_bytes = packed_row_bytes,
    .pack = pack_rows,
    .programs = [](const ops::Problem& problem, const DeviceInfo&,
                   const Config&) { return std::vector{program(std::get<Problem>(problem))}; },
    .launch = launch,
};

}  // namespace sinter::kernels::cuda
