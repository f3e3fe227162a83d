#include "numerics/mxfp4.h"

#include <cmath>

#include "base/error.h"
#include "numerics/e2m1.h"
#include "numerics/e8m0.h"
#include "numerics/nvfp4.h"

namespace sinter::numerics {
namespace {

void check_sizes(size_t num_values, size_t num_codes, size_t num_scales) {
  SINTER_CHECK(
      num_values % kMxfp4Block == 0 && num_codes == num_values / 2 && num_scales == num_values / kMxfp4Block,
      "{} values, {} code bytes, {} scales", num_values, num_codes, num_scales);
}

// The smallest e with amax <= 6 * 2^(e - 127). From the bits: amax / 6 in float32 could round onto a
// power of two that is too small.
uint8_t scale_of_amax(float amax) {
  int exponent = 0;
  const float fraction = std::frexp(amax, &exponent);  // amax = fraction * 2^exponent, 0.5 <= fraction < 1
  if (amax == 0) return 0;
  const int code = exponent + (fraction <= 0.75f ? -3 : -2) + 127;
  return static_cast<uint8_t>(code < 0 ? 0 : code);
}

}  // namespace

void quantize_mxfp4(std::span<const float> weights, std::span<uint8_t> codes, std::span<uint8_t> scales) {
  check_sizes(weights.size(), codes.size(), scales.size());
  for (size_t block = 0; block < scales.size(); ++block) {
    const auto values = weights.subspan(block * kMxfp4Block, kMxfp4Block);
    const float largest = amax(values);
    if (!std::isfinite(largest))
      throw Error(ErrorKind::kFormat, {.where = "MXFP4 quantisation",
                                       .expected = "finite weights",
                                       .found = std::isnan(largest) ? "NaN" : "an infinity",
                                       .mend = {}});
    scales[block] = scale_of_amax(largest);
    const float step = from_e8m0(scales[block]);
    for (size_t i = 0; i < kMxfp4Block; i += 2)
      codes[(block * kMxfp4Block + i) / 2] =
          pack_e2m1(to_e2m1(values[i] / step), to_e2m1(values[i + 1] / step));
  }
}

void dequantize_mxfp4(std::span<const uint8_t> codes, std::span<const uint8_t> scales,
                      std::span<float> values) {
  check_sizes(values.size(), codes.size(), scales.size());
  for (size_t i = 0; i < codes.size(); ++i) {
    const float scale = from_e8m0(scales[i * 2 / kMxfp4Block]);
    values[2 * i] = e2m1_even(codes[i]) * scale;
    values[2 * i + 1] = e2m1_odd(codes[i]) * scale;
  }
}

}  // namespace sinter::numerics
