#include "models/blocks/step.h"

#include <algorithm>
#include <bit>

namespace sinter::models {

int64_t context_bucket(int64_t max_context) {
  constexpr uint64_t kMinBucket = 256;
  return static_cast<int64_t>(std::bit_ceil(std::max(static_cast<uint64_t>(max_context), kMinBucket)));
}

void Step::report(std::string_view name, const TensorView& value) const {
  if (!probe) return;
  if (context.gpu() == nullptr) return probe(layer, name, value);
  const Buffer host = Buffer::host(static_cast<size_t>(value.size_bytes()));
  context.read(value, host.bytes());
  probe(layer, name, host.view(value.dtype(), value.shape()));
}

void Step::rms_norm(const TensorView& x, const TensorView& weight, double eps, const TensorView& y) const {
  context.run(
      ops::RmsNormProblem{
          .N = x.dim(0), .H = x.dim(1), .eps = static_cast<float>(eps), .x = x.dtype(), .y = y.dtype()},
      ops::RmsNormArgs{.x = x, .weight = weight, .y = y});
}

void Step::layer_norm(const TensorView& x, const TensorView& weight, const TensorView& bias, double eps,
                      const TensorView& y) const {
  context.run(
      ops::LayerNormProblem{
          .N = x.dim(0), .H = x.dim(1), .eps = static_cast<float>(eps), .x = x.dtype(), .y = y.dtype()},
      ops::LayerNormArgs{.x = x, .weight = weight, .bias = bias, .y = y});
}

void Step::rope(const TensorView& x, const TensorView& inv_freq, bool interleaved, float scale) const {
  context.run(ops::RopeProblem{.T = x.dim(0),
                               .N = x.dim(1),
                               .R = x.dim(2),
                               .interleaved = interleaved,
                               .scale = scale,
                               .x = x.dtype()},
              ops::RopeArgs{.x = x, .positions = batch.positions, .inv_freq = inv_freq});
}

void Step::cache_write(const TensorView& x, std::string_view name) const {
  context.run(
      ops::CacheWriteProblem{
          .T = T, .B = B, .W = x.dim(1), .P = cache.P(), .x = x.dtype(), .cache = cache.dtype()},
      ops::CacheWriteArgs{.x = x, .cache = cache.tensor(layer, name), .batch = batch});
}

void Step::silu_mul(const TensorView& gate, const TensorView& up, const TensorView& y) const {
  context.run(ops::SiluMulProblem{.T = gate.dim(0), .I = gate.dim(1), .x = gate.dtype(), .y = y.dtype()},
              ops::SiluMulArgs{.gate = gate, .up = up, .y = y});
}

void Step::gather(const TensorView& ids, const TensorView& table, const TensorView& y) const {
  context.run(
      ops::EmbeddingProblem{
          .T = ids.dim(0), .V = table.dim(0), .H = table.dim(1), .weight = table.dtype(), .y = y.dtype()},
      ops::EmbeddingArgs{.ids = ids, .weight = table, .y = y});
}

void Step::head_linear(const TensorView& x, const TensorView& weight, const TensorView& y) const {
  context.run(ops::HeadLinearProblem{.T = x.dim(0),
                                     .Q = weight.dim(0),
                                     .N = weight.dim(1),
                                     .K = weight.dim(2),
                                     .weight = weight.dtype(),
                                     .x = x.dtype(),
                                     .y = y.dtype()},
              ops::HeadLinearArgs{.x = x, .weight = weight, .y = y});
}

}  // namespace sinter::models
