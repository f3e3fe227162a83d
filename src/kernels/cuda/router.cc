#include "kernels/cuda/launch.h"
#include "kernels/gpu/router_params.h"

namespace sinter::kernels::cuda {
namespace {

using Problem = ops::RouterProblem;

Support supports(const ops::Problem& problem, const DeviceInfo& device) {
  const auto& p = std::get<Problem>(problem);
  if (p.num_groups > gpu::kMaxGroups)
    return Support::no(fmt::format("needs at most {} groups, here {}", gpu::kMaxGroups, p.num_groups));
  if (p.E > gpu::kMaxRouterExperts)
    return Support::no(fmt::format("needs at most {} experts, here {}", gpu::kMaxRouterExperts, p.E));
  return all_of({fits_32_bits({{"T", p.T}}), fits_shared(gpu::router_shared_bytes(narrow(p.E)), device)});
}

GpuProgram program(const Problem&) { return {"cuda/router.cu", {}}; }

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<Problem>(problem);
  const auto& a = std::get<ops::RouterArgs>(args);
  const gpu::RouterParams params = {.T = narrow(p.T),
                                    .E = narrow(p.E),
                                    .A = narrow(p.A),
                                    .is_softmax = p.scoring == ops::RouterScoring::kSoftmax ? 1 : 0,
                                    .num_groups = narrow(p.num_groups),
                                    .topk_groups = narrow(p.topk_groups),
                                    .normalize = p.normalize ? 1 : 0,
                                    .scale = p.scale};
  const LaunchShape shape = shape_of({blocks(p.T, gpu::kRouterTokens)}, 32 * gpu::kRouterTokens,
                                     gpu::router_shared_bytes(params.E));
  cuda::launch(context, program(p), "router", shape, memory(a.logits), memory(a.bias), memory(a.ids),
               memory(a.weights), params);
}

}  // namespace

extern const KernelInfo router = {
    .name = "cuda.router",
    .op = ops::Op::kRouter,
    .processor = Processor::kGpu,
    .supports = supports,
    .programs = [](const ops::Problem& problem, const DeviceInfo&,
                   const Config&) { return std::vector{program(std::get<Problem>(problem))}; },
    .launch = launch,
};

}  // namespace sinter::kernels::cuda
