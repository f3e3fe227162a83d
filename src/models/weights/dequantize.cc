#include "models/weights/dequantize.h"

#include <algorithm>

#include "base/error.h"
#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "numerics/fp8.h"
#include "numerics/mxfp4.h"
#include "numerics/nvfp4.h"

namespace sinter::models {

void dequantize_row(const ops::Weight& weight, int64_t n, std::span<float> values) {
  SINTER_CHECK(n < weight.N && static_cast<int64_t>(values.size()) == weight.K, "row {} of '{}'", n,
               weight.name);
  const auto K = static_cast<size_t>(weight.K);
  const auto codes = [&](size_t count) {
    return std::span<const uint8_t>(weight.data.row<uint8_t>(n), count);
  };
  const auto scales = [&](size_t count) {
    return std::span<const uint8_t>(weight.scale.row<uint8_t>(n), count);
  };
  switch (weight.format) {
    case ops::WeightFormat::kF32: std::copy_n(weight.data.row<float>(n), K, values.begin()); return;
    case ops::WeightFormat::kF16:
      std::transform(weight.data.row<uint16_t>(n), weight.data.row<uint16_t>(n) + K, values.begin(),
                     numerics::from_fp16);
      return;
    case ops::WeightFormat::kBF16:
      std::transform(weight.data.row<uint16_t>(n), weight.data.row<uint16_t>(n) + K, values.begin(),
                     numerics::from_bf16);
      return;
    case ops::WeightFormat::kFp8Tensor:
      numerics::dequantize_fp8(codes(K), weight.scale_tensor, values);
      return;
    case ops::WeightFormat::kFp8Block: {
      constexpr auto kTile = static_cast<size_t>(numerics::kFp8Tile);
      const float* tile_scales = weight.scale.row<float>(n / numerics::kFp8Tile);
      for (size_t k = 0; k < K; k += kTile) {
        const size_t count = std::min(kTile, K - k);
        numerics::dequantize_fp8(codes(K).subspan(k, count), tile_scales[k / kTile],
                                 values.subspan(k, count));
      }
      return;
    }
    case ops::WeightFormat::kNvfp4:
      numerics::dequantize_nvfp4(codes(K / 2), scales(K / numerics::kNvfp4Block), {weight.scale_tensor},
                                 values);
      return;
    case ops::WeightFormat::kMxfp4:
      numerics::dequantize_mxfp4(codes(K / 2), scales(K / numerics::kMxfp4Block), values);
      return;
    case ops::WeightFormat::kMixed: break;
  }
  SINTER_CHECK(false, "weight '{}' has no format", weight.name);
}

}  // namespace sinter::models
