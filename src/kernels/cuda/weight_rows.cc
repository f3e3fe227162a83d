#include "kernels/cuda/weight_rows.h"

#include "base/error.h"
#include "kernels/gpu_launch.h"

namespace sinter::kernels::cuda {
namespace {

constexpr size_t kAlignment = 256;

size_t aligned(size_t size_bytes) { return (size_bytes + kAlignment - 1) / kAlignment * kAlignment; }

size_t scale_bytes(const ops::Weight& weight) {
  return weight.scale.is_empty() ? 0 : static_cast<size_t>(weight.scale.size_bytes());
}

// In the order of their descriptors.
std::vector<const ops::Weight*> matrices_of(const ops::Weights& weights) {
  if (const auto* weight = std::get_if<ops::Weight>(&weights)) return {weight};
  const auto& experts = std::get<ops::MoeWeights>(weights);
  std::vector<const ops::Weight*> matrices;
  matrices.reserve(3 * experts.gate.size());
  for (size_t e = 0; e < experts.gate.size(); ++e)
    matrices.insert(matrices.end(), {&experts.gate[e], &experts.up[e], &experts.down[e]});
  return matrices;
}

}  // namespace

std::string format_of(ops::WeightFormat format) {
  using enum ops::WeightFormat;
  switch (format) {
    case kF32: return "F32Format";
    case kF16: return "F16Format";
    case kBF16: return "Bf16Format";
    case kFp8Tensor: return "Fp8TensorFormat";
    case kFp8Block: return "Fp8BlockFormat";
    case kNvfp4: return "Nvfp4Format";
    case kMxfp4: return "Mxfp4Format";
    case kMixed: return "MixedFormat";
  }
  return "?";
}

int lane_k(ops::WeightFormat format) {
  using enum ops::WeightFormat;
  switch (format) {
    case kF32: return 4;
    case kF16:
    case kBF16: return 8;
    case kFp8Tensor:
    case kFp8Block: return 16;
    case kNvfp4:
    case kMxfp4:
    case kMixed: return 32;
  }
  return 32;
}

bool has_tile_product(ops::WeightFormat format) {
  using enum ops::WeightFormat;
  return format != kF32 && format != kF16 && format != kMixed;
}

size_t packed_row_bytes(const ops::Weights& weights) {
  const std::vector<const ops::Weight*> matrices = matrices_of(weights);
  size_t size_bytes = aligned(matrices.size() * sizeof(gpu::Matrix));
  for (const ops::Weight* weight : matrices)
    size_bytes += aligned(static_cast<size_t>(weight->data.size_bytes())) + aligned(scale_bytes(*weight));
  return size_bytes;
}

void pack_rows(LaunchContext& context, const ops::Weights& weights, std::span<std::byte> packed) {
  GpuUploader& uploader = context.gpu->uploader;
  const std::vector<const ops::Weight*> matrices = matrices_of(weights);
  std::vector<gpu::Matrix> descriptors;
  descriptors.reserve(matrices.size());
  std::byte* at = packed.data() + aligned(matrices.size() * sizeof(gpu::Matrix));
  const auto put = [&](const TensorView& tensor, size_t size_bytes) -> std::byte* {
    if (size_bytes == 0) return nullptr;
    std::byte* const place = at;
    uploader.copy(place, static_cast<const std::byte*>(tensor.data()), size_bytes);
    at += aligned(size_bytes);
    return place;
  };
  for (const ops::Weight* weight : matrices) {
    const std::byte* data = put(weight->data, static_cast<size_t>(weight->data.size_bytes()));
    const std::byte* scale = put(weight->scale, scale_bytes(*weight));
    descriptors.push_back({data, scale, weight->scale_tensor, static_cast<int>(weight->format)});
  }
  SINTER_CHECK(at == packed.data() + packed.size(), "{} bytes packed into {}", at - packed.data(),
               packed.size());
  uploader.copy(packed.data(), reinterpret_cast<const std::byte*>(descriptors.data()),
                descriptors.size() * sizeof(gpu::Matrix));
}

gpu::Matrix packed_matrix(const ops::PackedWeights& weights) {
  const ops::Weight& weight = weights.matrix();
  const std::byte* data = weights.packed.data() + aligned(sizeof(gpu::Matrix));
  const std::byte* scale = data + aligned(static_cast<size_t>(weight.data.size_bytes()));
  return {data, weight.scale.is_empty() ? nullptr : scale, weight.scale_tensor,
          static_cast<int>(weight.format)};
}

}  // namespace sinter::kernels::cuda
