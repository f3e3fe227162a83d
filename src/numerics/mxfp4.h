// MXFP4: blocks of 32 e2m1 codes along K with one e8m0 scale each and no scale of the tensor.
#pragma once

#include <cstdint>
#include <span>

namespace sinter::numerics {

inline constexpr int64_t kMxfp4Block = 32;

// The scale is the smallest power of two under which the block's amax is at most 6, so nothing is
// clipped (the OCP text rounds it down and clips). codes: values / 2, scales: values / 32. Throws
// Error(kFormat) on infinities and NaN.
void quantize_mxfp4(std::span<const float> weights, std::span<uint8_t> codes, std::span<uint8_t> scales);

void dequantize_mxfp4(std::span<const uint8_t> codes, std::span<const uint8_t> scales,
                      std::span<float> values);

}  // namespace sinter::numerics
