#include "ops/weights.h"

namespace sinter::ops {

std::string_view name(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32: return "f32";
    case WeightFormat::kF16: return "f16";
    case WeightFormat::kBF16: return "bf16";
    case WeightFormat::kFp8Tensor: return "fp8";
    case WeightFormat::kFp8Block: return "fp8_block";
    case WeightFormat::kNvfp4: return "nvfp4";
    case WeightFormat::kMxfp4: return "mxfp4";
    case WeightFormat::kMixed: return "mixed";
  }
  return "?";
}

int64_t stored_bytes(WeightFormat format, int64_t N, int64_t K) {
  switch (format) {
    case WeightFormat::kF32: return N * K * 4;
    case WeightFormat::kF16:
    case WeightFormat::kBF16: return N * K * 2;
    case WeightFormat::kFp8Tensor: return N * K;
    case WeightFormat::kFp8Block: return N * K + (N + 127) / 128 * ((K + 127) / 128) * 4;
    case WeightFormat::kNvfp4: return N * (K / 2 + K / 16);
    case WeightFormat::kMxfp4: return N * (K / 2 + K / 32);
    case WeightFormat::kMixed: break;
  }
  return 0;
}

WeightFormat common_format(const std::vector<Weight>& weights) {
  for (const Weight& weight : weights)
    if (weight.format != weights.front().format) return WeightFormat::kMixed;
  return weights.empty() ? WeightFormat::kMixed : weights.front().format;
}

std::string_view name(WeightLayout layout) {
  switch (layout) {
    case WeightLayout::kNone: return "none";
    case WeightLayout::kInPlace: return "in_place";
    case WeightLayout::kCpuTile16: return "cpu_tile16";
    case WeightLayout::kCpuRows16: return "cpu_rows16";
    case WeightLayout::kGpuRows: return "gpu_rows";
  }
  return "?";
}

}  // namespace sinter::ops
