#include "numerics/fp8.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "numerics/e4m3.h"
#include "numerics/nvfp4.h"

namespace sinter::numerics {
namespace {

float scale_of_amax(float amax) {
  if (!std::isfinite(amax))
    throw Error(ErrorKind::kFormat, {.where = "FP8 quantisation",
                                     .expected = "finite weights",
                                     .found = std::isnan(amax) ? "NaN" : "an infinity",
                                     .mend = {}});
  const float scale = amax / kE4m3Max;
  return scale == 0 ? 1.0f : scale;
}

void check_sizes(size_t num_values, size_t num_codes, size_t num_scales, int64_t n, int64_t k) {
  SINTER_CHECK(n >= 0 && k >= 0 && num_values == static_cast<size_t>(n * k) && num_codes == num_values &&
                   num_scales == static_cast<size_t>(num_fp8_tiles(n) * num_fp8_tiles(k)),
               "[{}, {}]: {} values, {} codes, {} scales", n, k, num_values, num_codes, num_scales);
}

// body(tile, begin, count) for each row segment of each tile.
template <typename Body>
void for_each_segment(int64_t n, int64_t k, Body body) {
  for (int64_t row = 0; row < n; ++row)
    for (int64_t column = 0; column < k; column += kFp8Tile)
      body(static_cast<size_t>(row / kFp8Tile * num_fp8_tiles(k) + column / kFp8Tile),
           static_cast<size_t>(row * k + column), static_cast<size_t>(std::min(kFp8Tile, k - column)));
}

}  // namespace

float quantize_fp8(std::span<const float> weights, std::span<uint8_t> codes) {
  SINTER_CHECK(weights.size() == codes.size(), "{} values, {} codes", weights.size(), codes.size());
  const float scale = scale_of_amax(amax(weights));
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = to_e4m3(weights[i] / scale);
  return scale;
}

void dequantize_fp8(std::span<const uint8_t> codes, float scale, std::span<float> values) {
  SINTER_CHECK(values.size() == codes.size(), "{} values, {} codes", values.size(), codes.size());
  for (size_t i = 0; i < codes.size(); ++i) values[i] = from_e4m3(codes[i]) * scale;
}

void quantize_fp8_tiles(std::span<const float> weights, int64_t n, int64_t k, std::span<uint8_t> codes,
                        std::span<float> scales) {
  check_sizes(weights.size(), codes.size(), scales.size(), n, k);
  std::ranges::fill(scales, 0.0f);
  for_each_segment(n, k, [&](size_t tile, size_t begin, size_t count) {
    const float largest = amax(weights.subspan(begin, count));
    if (std::isnan(largest) || largest > scales[tile]) scales[tile] = largest;
  });
  for (float& scale : scales) scale = scale_of_amax(scale);
  for_each_segment(n, k, [&](size_t tile, size_t begin, size_t count) {
    for (size_t i = begin; i < begin + count; ++i) codes[i] = to_e4m3(weights[i] / scales[tile]);
  });
}

void dequantize_fp8_tiles(std::span<const uint8_t> codes, std::span<const float> scales, int64_t n, int64_t k,
                          std::span<float> values) {
  check_sizes(values.size(), codes.size(), scales.size(), n, k);
  for_each_segment(n, k, [&](size_t tile, size_t begin, size_t count) {
    for (size_t i = begin; i < begin + count; ++i) values[i] = from_e4m3(codes[i]) * scales[tile];
  });
}

}  // namespace sinter::numerics
