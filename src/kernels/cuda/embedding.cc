#include "kernels/cuda/launch.h"
#include "kernels/gpu/embedding_params.h"

namespace sinter::kernels::cuda {
namespace {

using Problem = ops::EmbeddingProblem;

Support supports(const ops::Problem& problem, const DeviceInfo&) {
  const auto& p = std::get<Problem>(problem);
  return fits_32_bits({{"T", p.T}, {"V", p.V}, {"H", p.H}});
}

GpuProgram program(const Problem& p) {
  return {"cuda/embedding.cu", {{"SINTER_WEIGHT", element_of(p.weight)}, {"SINTER_Y", element_of(p.y)}}};
}

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<Problem>(problem);
  const auto& a = std::get<ops::EmbeddingArgs>(args);
  cuda::launch(context, program(p), "embedding", shape_of({blocks(p.T, 1)}, row_threads(p.H)), memory(a.ids),
               memory(a.weight), memory(a.y), gpu::EmbeddingParams{narrow(p.H)});
}

}  // namespace

extern const KernelInfo embedding = {
    .name = "cuda.embedding",
    .op = ops::Op::kEmbedding,
    .processor = Processor::kGpu,
    .supports = supports,
    .programs = [](const ops::Problem& problem, const DeviceInfo&,
                   const Config&) { return std::vector{program(std::get<Problem>(problem))}; },
    .launch = launch,
};

}  // namespace sinter::kernels::cuda
