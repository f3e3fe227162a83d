#include "kernels/cuda/launch.h"
#include "kernels/cuda/token_counts.h"
#include "kernels/cuda/weight_rows.h"
#include "kernels/gpu/linear_params.h"
#include "kernels/gpu/row_product_params.h"

namespace sinter::kernels::cuda {
namespace {

using Problem = ops::LinearProblem;

Support supports(const ops::Problem& problem, const DeviceInfo&) {
  const auto& p = std::get<Problem>(problem);
  if (p.format == ops::WeightFormat::kMixed) return Support::no("needs one format, the weights are mixed");
  if (p.T > kMostRowTokens && p.x == DType::kBF16 && has_tile_product(p.format))
    return Support::no(fmt::format("for more than {} tokens cuda.linear_prefill is faster", kMostRowTokens));
  return all_of(
      {fits_32_bits({{"N", p.N}, {"K", p.K}}), fits_grid("the tokens", blocks(p.T, 8 * row_tiles(p.T)))});
}

GpuProgram program(const Problem& p) {
  return {"cuda/linear_decode.cu",
          {{"SINTER_FORMAT", format_of(p.format)},
           {"SINTER_X", element_of(p.x)},
           {"SINTER_Y", element_of(p.y)},
           {"SINTER_TILES", std::to_string(row_tiles(p.T))}}};
}

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<Problem>(problem);
  const auto& a = std::get<ops::LinearArgs>(args);
  const gpu::LinearParams params = {narrow(p.T),          narrow(p.N),   narrow(p.K),
                                    p.accumulate ? 1 : 0, a.x.stride(0), a.y.stride(0)};
  const Dim3 grid = {blocks(p.N, gpu::kRowsAtOnce), blocks(p.T, 8 * row_tiles(p.T))};
  cuda::launch(context, program(p), "linear_decode",
               shape_of(grid, gpu::row_product_threads(p.K, lane_k(p.format))), memory(a.x),
               packed_matrix(*a.weight), memory(a.bias), memory(a.y), params);
}

}  // namespace

extern const KernelInfo linear_decode = {
    .name = "cuda.linear_decode",
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
