#include "numerics/nvfp4.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <vector>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "numerics/bf16.h"
#include "numerics/e4m3.h"

namespace sinter::numerics {
namespace {

struct Quantised {
  std::vector<uint8_t> codes, scales;
  DecodeScale scale_tensor;
};

Quantised quantise(const std::vector<float>& weights, const float* given_scale = nullptr) {
  Quantised result{std::vector<uint8_t>(weights.size() / 2), std::vector<uint8_t>(weights.size() / 16), {}};
  if (given_scale != nullptr) {
    result.scale_tensor = {*given_scale};
    quantize_nvfp4(weights, result.scale_tensor, result.codes, result.scales);
  } else {
    result.scale_tensor = quantize_nvfp4(weights, result.codes, result.scales);
  }
  return result;
}

std::vector<uint8_t> bytes_of(const TensorView& tensor) {
  const auto* data = static_cast<const uint8_t*>(tensor.data());
  return {data, data + tensor.size_bytes()};
}

std::vector<float> floats_of(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = tensor.dtype() == DType::kBF16 ? from_bf16(tensor.data_as<uint16_t>()[i])
                                               : tensor.data_as<float>()[i];
  return values;
}

// Two blocks worked out by hand; the second holds the amax.
TEST(Nvfp4, QuantisesTheSpecifiedVector) {
  const std::vector<float> weights = {.011f, -.02f, .035f, .05f,   -.061f, .08f,  0.f,   -.004f,
                                      .013f, -.09f, .12f,  .027f,  -.055f, .066f, -.1f,  .002f,
                                      .5f,   -.25f, .125f, .0625f, -.4f,   .3f,   .2f,   -.1f,
                                      .45f,  -.33f, .21f,  .07f,   -.01f,  .03f,  -.48f, .15f};
  const Quantised result = quantise(weights);
  EXPECT_EQ(result.scale_tensor.value, 0.5f / 2688.0f);
  EXPECT_EQ(result.scales, (std::vector<uint8_t>{0x6d, 0x7e}));
  EXPECT_EQ(result.codes, (std::vector<uint8_t>{0xa1, 0x54, 0x6d, 0x80, 0xe1, 0x37, 0x5d, 0x0f, 0xd7, 0x23,
                                                0x6e, 0xa4, 0xe7, 0x25, 0x18, 0x4f}));
  const float expected[] = {.009673f,  -.019345f, .03869f,   .058036f, -.058036f, .077381f,  0.f,
                            -0.f,      .009673f,  -.077381f, .116071f, .029018f,  -.058036f, .058036f,
                            -.116071f, 0.f,       .5f,       -.25f,    .125f,     .083333f,  -.333333f,
                            .333333f,  .166667f,  -.083333f, .5f,      -.333333f, .25f,      .083333f,
                            -0.f,      .041667f,  -.5f,      .166667f};
  std::vector<float> values(32);
  dequantize_nvfp4(result.codes, result.scales, result.scale_tensor, values);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-6) << i;
  EXPECT_TRUE(std::signbit(values[7]));
}

// tests/golden/modelopt/nvfp4.safetensors is written by tools/modelopt_reference.py.
TEST(Nvfp4, GivesTheBytesOfModelOpt) {
  const checkpoint::SafetensorsFile file(SINTER_SOURCE_DIR "/tests/golden/modelopt/nvfp4.safetensors");
  int num_cases = 0;
  for (const checkpoint::TensorEntry& entry : file.header().tensors) {
    if (!entry.name.ends_with(".weight")) continue;
    const std::string name = entry.name.substr(0, entry.name.size() - 7);
    SCOPED_TRACE(name);
    const checkpoint::TensorEntry* given = file.find(name + ".given_scale");
    const Quantised result = quantise(floats_of(file.at(entry.name)),
                                      given == nullptr ? nullptr : file.view(*given).data_as<float>());
    EXPECT_EQ(result.scale_tensor.value, *file.at(name + ".scale_tensor").data_as<float>());
    EXPECT_EQ(result.scales, bytes_of(file.at(name + ".scales")));
    EXPECT_EQ(result.codes, bytes_of(file.at(name + ".codes")));
    ++num_cases;
  }
  EXPECT_EQ(num_cases, 12);
}

TEST(Nvfp4, ZerosHaveFiniteScales) {
  const std::vector<float> zeros(32, 0.0f);
  const Quantised result = quantise(zeros);
  EXPECT_EQ(result.scale_tensor.value, 1.0f);
  EXPECT_EQ(result.scales, std::vector<uint8_t>(2, to_e4m3(1.0f)));
  EXPECT_EQ(result.codes, std::vector<uint8_t>(16, 0));
}

TEST(Nvfp4, RefusesNumbersThatAreNotFinite) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> weights(16, 1.0f);
    weights[5] = bad;
    EXPECT_THROW(quantise(weights), Error) << bad;
  }
}

// A block's values are at most half a code away: a step is 2 at the top, scaled to amax.
TEST(Nvfp4, ActivationsStayWithinHalfAStep) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(4096);
  for (float& value : values) value = normal(random);
  const DecodeScale input_scale = nvfp4_scale_of_amax(amax(values));
  std::vector<uint8_t> codes(values.size() / 2), scales(values.size() / 16);
  quantize_nvfp4_activation(values, encode_scale(input_scale), codes, scales);
  std::vector<float> decoded(values.size());
  dequantize_nvfp4(codes, scales, input_scale, decoded);
  for (size_t i = 0; i < values.size(); ++i) {
    const float largest = amax(std::span(values).subspan(i / 16 * 16, 16));
    // The e4m3 scale may be 1/16 off the ideal one, which moves the saturation point too.
    EXPECT_LE(std::abs(decoded[i] - values[i]), largest / 6 * 1.0f * (1 + 1.0f / 16) + 1e-6f) << i;
  }
}

TEST(Nvfp4, ActivationsOverTheCalibratedRangeSaturate) {
  std::vector<float> values(32, 0.0f);
  values[0] = 100.0f, values[1] = -3.0f, values[16] = 1e-9f;
  const DecodeScale input_scale = nvfp4_scale_of_amax(10.0f);
  std::vector<uint8_t> codes(16), scales(2);
  quantize_nvfp4_activation(values, encode_scale(input_scale), codes, scales);
  EXPECT_EQ(scales[0], 0x7e);
  EXPECT_EQ(scales[1], 0);  // decodes to zeros
  std::vector<float> decoded(32);
  dequantize_nvfp4(codes, scales, input_scale, decoded);
  EXPECT_NEAR(decoded[0], 10.0f, 1e-5);
  EXPECT_NEAR(decoded[1], -3.0f, 0.5f);
  EXPECT_EQ(decoded[16], 0.0f);
}

}  // namespace
}  // namespace sinter::numerics
