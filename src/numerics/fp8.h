// FP8 weights: e4m3 codes with one float32 scale a tensor, or one for each tile of 128 x 128.
#pragma once

#include <cstdint>
#include <span>

namespace sinter::numerics {

inline constexpr int64_t kFp8Tile = 128;

// Number of tiles along a dimension; the last one may be cut.
constexpr int64_t num_fp8_tiles(int64_t size) { return (size + kFp8Tile - 1) / kFp8Tile; }

// Scales are amax / 448 and multiply when decoding; 1 where everything is zero. Throws Error(kFormat) on
// infinities and NaN.
float quantize_fp8(std::span<const float> weights, std::span<uint8_t> codes);
void dequantize_fp8(std::span<const uint8_t> codes, float scale, std::span<float> values);

// weights [N, K], codes [N, K], scales [ceil(N / 128), ceil(K / 128)], all row-major.
void quantize_fp8_tiles(std::span<const float> weights, int64_t n, int64_t k, std::span<uint8_t> codes,
                        std::span<float> scales);
void dequantize_fp8_tiles(std::span<const uint8_t> codes, std::span<const float> scales, int64_t n, int64_t k,
                          std::span<float> values);

}  // namespace sinter::numerics
