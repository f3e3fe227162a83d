#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "base/error.h"
#include "numerics/e2m1.h"
#include "numerics/e8m0.h"
#include "numerics/fp8.h"
#include "numerics/mxfp4.h"
#include "numerics/nvfp4.h"
#include "numerics/scale_layout.h"

namespace sinter::numerics {
namespace {

std::vector<float> random_values(size_t count) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random) * std::exp(normal(random));
  return values;
}

TEST(Mxfp4, ScaleIsTheSmallestThatClipsNothing) {
  struct Case {
    float amax;
    uint8_t scale;
  };
  const float over_six = std::nextafter(6.0f, 7.0f);
  for (const Case& c : {Case{6.0f, 127}, Case{over_six, 128}, Case{3.0f, 126}, Case{12.0f, 128},
                        Case{4.0f, 127}, Case{0.0f, 0}, Case{1e-40f, 0}, Case{3e38f, 253}}) {
    std::vector<float> values(32, 0.0f);
    values[9] = -c.amax;
    std::vector<uint8_t> codes(16), scales(1);
    quantize_mxfp4(values, codes, scales);
    EXPECT_EQ(scales[0], c.scale) << c.amax;
  }
}

TEST(Mxfp4, RoundTripIsTheNearestCode) {
  const std::vector<float> values = random_values(1024);
  std::vector<uint8_t> codes(512), scales(32);
  quantize_mxfp4(values, codes, scales);
  std::vector<float> decoded(1024);
  dequantize_mxfp4(codes, scales, decoded);
  for (size_t i = 0; i < values.size(); ++i) {
    const float scale = from_e8m0(scales[i / 32]);
    float nearest = INFINITY;
    for (const float code : kE2m1Values) nearest = std::min(nearest, std::abs(code * scale - values[i]));
    EXPECT_EQ(std::abs(decoded[i] - values[i]), nearest) << i;
  }
}

TEST(Fp8, TilesOfACutMatrix) {
  const int64_t n = 130, k = 257;
  std::vector<float> values = random_values(static_cast<size_t>(n * k));
  for (int64_t i = 0; i < n * k; ++i)
    if (i / k >= 128) values[i] *= 1000;  // the second row of tiles has its own scales
  std::vector<uint8_t> codes(values.size());
  std::vector<float> scales(2 * 3);
  quantize_fp8_tiles(values, n, k, codes, scales);
  std::vector<float> decoded(values.size());
  dequantize_fp8_tiles(codes, scales, n, k, decoded);
  std::vector<float> largest(scales.size(), 0.0f);
  for (int64_t i = 0; i < n * k; ++i) {
    const int64_t tile = i / k / 128 * 3 + i % k / 128;
    largest[tile] = std::max(largest[tile], std::abs(values[i]));
    // Three mantissa bits: half a step is 1/16 of the value, or half the smallest code.
    EXPECT_LE(std::abs(decoded[i] - values[i]),
              std::max(std::abs(values[i]) / 16, scales[tile] * 0x1p-10f) * 1.0001f);
  }
  for (size_t tile = 0; tile < scales.size(); ++tile) EXPECT_EQ(scales[tile], largest[tile] / 448.0f);
}

TEST(Fp8, TensorScale) {
  std::vector<uint8_t> codes(3);
  const float scale = quantize_fp8(std::vector<float>{-896.0f, 2.0f, 0.0f}, codes);
  EXPECT_EQ(scale, 2.0f);
  EXPECT_EQ(codes, (std::vector<uint8_t>{0xfe, 0x38, 0x00}));
  EXPECT_EQ(quantize_fp8(std::vector<float>(3, 0.0f), codes), 1.0f);
  EXPECT_THROW(quantize_fp8(std::vector<float>{1.0f, NAN, 0.0f}, codes), Error);
}

TEST(ScaleLayout, GoesThereAndBackAndWritesPadding) {
  for (const auto& [rows, blocks] : {std::pair{1, 1}, {128, 4}, {130, 5}, {300, 17}}) {
    std::vector<uint8_t> scales(static_cast<size_t>(rows * blocks));
    for (size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<uint8_t>(1 + i % 255);
    std::vector<uint8_t> tiled(static_cast<size_t>(tiled_scales_bytes(rows, blocks)), 0xff);
    tile_scales(scales, rows, blocks, tiled);
    EXPECT_EQ(std::ranges::count_if(tiled, [](uint8_t x) { return x != 0; }), rows * blocks);
    std::vector<uint8_t> back(scales.size());
    untile_scales(tiled, rows, blocks, back);
    EXPECT_EQ(back, scales);
  }
}

// Constant expressions: tables in kernels may be made from these.
static_assert(to_e2m1(0.75f) == 2 && to_e2m1(-0.25f) == 8 && to_e2m1(1e30f) == 7);
static_assert(from_e8m0(127) == 1.0f && to_e8m0_ceil(1.5f) == 128);

}  // namespace
}  // namespace sinter::numerics
