#include "numerics/nvfp4.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"

namespace sinter::numerics {
namespace {

void check_sizes(size_t num_values, size_t num_codes, size_t num_scales) {
  SINTER_CHECK(
      num_values % kNvfp4Block == 0 && num_codes == num_values / 2 && num_scales == num_values / kNvfp4Block,
      "{} values, {} code bytes, {} scales", num_values, num_codes, num_scales);
}

void check_finite(float largest) {
  if (std::isfinite(largest)) return;
  throw Error(ErrorKind::kFormat, {.where = "NVFP4 quantisation",
                                   .expected = "finite weights",
                                   .found = std::isnan(largest) ? "NaN" : "an infinity",
                                   .mend = {}});
}

void quantize_blocks(std::span<const float> weights, DecodeScale scale_tensor, std::span<uint8_t> codes,
                     std::span<uint8_t> scales) {
  for (size_t block = 0; block < scales.size(); ++block) {
    const auto values = weights.subspan(block * kNvfp4Block, kNvfp4Block);
    float scale = amax(values) / (kE2m1Max * scale_tensor.value);
    if (scale == 0) scale = 1;
    scales[block] = to_e4m3(std::clamp(scale, kE4m3Smallest, kE4m3Max));
    const float step = from_e4m3(scales[block]) * scale_tensor.value;
    for (size_t i = 0; i < kNvfp4Block; i += 2) {
      // A division, not a product with the reciprocal: they differ at ties. Adding zero turns -0 to 0,
      // whose sign ModelOpt drops.
      codes[(block * kNvfp4Block + i) / 2] =
          pack_e2m1(to_e2m1(values[i] / step + 0.0f), to_e2m1(values[i + 1] / step + 0.0f));
    }
  }
}

}  // namespace

float amax(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) {
    if (std::isnan(value)) return value;
    largest = std::max(largest, std::abs(value));
  }
  return largest;
}

DecodeScale nvfp4_scale_of_amax(float amax) {
  const float scale = amax / kNvfp4Max;
  return {scale == 0 ? 1.0f : scale};
}

DecodeScale quantize_nvfp4(std::span<const float> weights, std::span<uint8_t> codes,
                           std::span<uint8_t> scales) {
  check_sizes(weights.size(), codes.size(), scales.size());
  const float largest = amax(weights);
  check_finite(largest);
  const DecodeScale scale_tensor = nvfp4_scale_of_amax(largest);
  quantize_blocks(weights, scale_tensor, codes, scales);
  return scale_tensor;
}

void quantize_nvfp4(std::span<const float> weights, DecodeScale scale_tensor, std::span<uint8_t> codes,
                    std::span<uint8_t> scales) {
  check_sizes(weights.size(), codes.size(), scales.size());
  check_finite(amax(weights));
  quantize_blocks(weights, scale_tensor, codes, scales);
}

void quantize_nvfp4_activation(std::span<const float> values, EncodeScale scale_tensor,
                               std::span<uint8_t> codes, std::span<uint8_t> scales) {
  check_sizes(values.size(), codes.size(), scales.size());
  const float decode = decode_scale(scale_tensor).value;
  for (size_t block = 0; block < scales.size(); ++block) {
    const auto inputs = values.subspan(block * kNvfp4Block, kNvfp4Block);
    const float largest = amax(inputs);
    scales[block] = to_e4m3(scale_tensor.value * (largest / kE2m1Max));
    // A block so small that its scale rounds to zero is stored with that scale: it decodes to zeros.
    const float step = from_e4m3(scales[block]) * decode;
    const float multiplier = largest == 0 ? 0.0f : 1.0f / step;
    for (size_t i = 0; i < kNvfp4Block; i += 2)
      codes[(block * kNvfp4Block + i) / 2] =
          pack_e2m1(to_e2m1(inputs[i] * multiplier), to_e2m1(inputs[i + 1] * multiplier));
  }
}

void dequantize_nvfp4(std::span<const uint8_t> codes, std::span<const uint8_t> scales,
                      DecodeScale scale_tensor, std::span<float> values) {
  check_sizes(values.size(), codes.size(), scales.size());
  for (size_t i = 0; i < codes.size(); ++i) {
    const float scale = from_e4m3(scales[i * 2 / kNvfp4Block]);
    values[2 * i] = e2m1_even(codes[i]) * scale * scale_tensor.value;
    values[2 * i + 1] = e2m1_odd(codes[i]) * scale * scale_tensor.value;
  }
}

}  // namespace sinter::numerics
