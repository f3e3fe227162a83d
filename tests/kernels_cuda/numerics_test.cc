// Device conversions against src/numerics: all codes, and float32 values around every rounding border.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/cpu/philox.h"
#include "kernels/cpu/rank_key.h"
#include "kernels_cuda/simt.h"
#include "numerics/bf16.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/e8m0.h"
#include "numerics/fp16.h"

#include "kernels/gpu/formats.h"
#include "kernels/gpu/philox.h"

namespace sinter {
namespace {

uint32_t bits(float value) { return std::bit_cast<uint32_t>(value); }

// Every exponent with many fractions and both signs, infinities and NaN.
std::vector<float> many_floats() {
  std::vector<float> values;
  std::mt19937 random(1);
  for (uint32_t upper = 0; upper < 1u << 16; ++upper)
    for (uint32_t lower :
         {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu, static_cast<uint32_t>(random() & 0xffff)})
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
  return values;
}

TEST(Numerics, DecodesEveryCode) {
  for (uint32_t code = 0; code < 1u << 16; ++code) {
    const auto half = static_cast<uint16_t>(code);
    ASSERT_EQ(bits(gpu::from_bf16(half)), bits(numerics::from_bf16(half))) << code;
    ASSERT_EQ(bits(gpu::from_fp16(half)), bits(numerics::from_fp16(half))) << code;
  }
  for (uint32_t code = 0; code < 256; ++code) {
    const auto byte = static_cast<uint8_t>(code);
    ASSERT_EQ(bits(gpu::from_e4m3(byte)), bits(numerics::from_e4m3(byte))) << code;
    ASSERT_EQ(bits(gpu::from_e2m1(byte)), bits(numerics::from_e2m1(byte))) << code;
    ASSERT_EQ(bits(gpu::from_e8m0(byte)), bits(numerics::from_e8m0(byte))) << code;
  }
}

TEST(Numerics, RoundsAsTheHostDoes) {
  for (const float value : many_floats()) {
    ASSERT_EQ(gpu::to_bf16(value), numerics::to_bf16(value)) << bits(value);
    ASSERT_EQ(gpu::to_fp16(value), numerics::to_fp16(value)) << bits(value);
    ASSERT_EQ(gpu::to_e4m3(value), numerics::to_e4m3(value)) << bits(value);
    ASSERT_EQ(gpu::to_e2m1(value), numerics::to_e2m1(value)) << bits(value);
    ASSERT_EQ(gpu::rank_key(value, 77), kernels::cpu::rank_key(value, 77)) << bits(value);
    const auto key = static_cast<uint32_t>(kernels::cpu::rank_key(value, 77) >> 32);
    ASSERT_EQ(bits(gpu::key_value(key)), bits(kernels::cpu::key_value(uint64_t{key} << 32)));
  }
}

TEST(Numerics, DrawsTheSameNumbers) {
  for (const uint64_t seed : {0ull, 1ull, 0x123456789abcdefull, ~0ull})
    for (uint64_t draw_idx = 0; draw_idx < 100; ++draw_idx)
      ASSERT_EQ(gpu::philox_word(seed, draw_idx) * 0x1p-32, kernels::cpu::philox_uniform(seed, draw_idx));
}

// A line of 16 bytes as floats, in the order of the weights.
template <typename Format>
std::vector<double> decoded(const std::vector<uint8_t>& bytes, uint32_t scales) {
  gpu::PackedLine<Format> line;
  std::memcpy(&line.line, bytes.data(), 16);
  line.scales = scales;
  gpu::U32 pairs[Format::kParts][Format::kLaneK / 2];
  line.decode(pairs);
  std::vector<double> values(Format::kLaneK);
  for (int i = 0; i < Format::kLaneK / 2; ++i) {
    const int low = Format::kSplitPairs ? i / 4 * 8 + i % 4 : 2 * i;
    const int high = Format::kSplitPairs ? low + 4 : low + 1;
    for (int part = 0; part < Format::kParts; ++part) {
      values[static_cast<size_t>(low)] += static_cast<double>(gpu::from_bf16(pairs[part][i] & 0xffff));
      values[static_cast<size_t>(high)] += static_cast<double>(gpu::from_bf16(pairs[part][i] >> 16));
    }
  }
  const gpu::Matrix unit = {nullptr, nullptr, 1, 0};
  for (double& value : values) value *= static_cast<double>(Format::finish(1, unit));
  return values;
}

TEST(Formats, DecodeExactly) {
  std::vector<uint8_t> bytes(16);
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    // Every scale but NaN, zero and subnormal ones too.
    for (const uint32_t scale : {static_cast<uint32_t>(round % 127), 0u, 1u, 0x7eu}) {
      const std::vector<double> fp4 = decoded<gpu::Nvfp4Format>(bytes, scale | 0x3900);
      for (size_t i = 0; i < 32; ++i)
        ASSERT_EQ(fp4[i],
                  static_cast<double>(numerics::from_e2m1(static_cast<uint8_t>(bytes[i / 2] >> i % 2 * 4))) *
                      static_cast<double>(numerics::from_e4m3(i < 16 ? static_cast<uint8_t>(scale) : 0x39)))
            << i;
    }
    const auto exponent = static_cast<uint8_t>(round % 250);
    const std::vector<double> mx = decoded<gpu::Mxfp4Format>(bytes, exponent);
    for (size_t i = 0; i < 32; ++i)
      ASSERT_EQ(mx[i],
                static_cast<double>(numerics::from_e2m1(static_cast<uint8_t>(bytes[i / 2] >> i % 2 * 4))) *
                    static_cast<double>(numerics::from_e8m0(exponent)));
    const std::vector<double> fp8 = decoded<gpu::Fp8TensorFormat>(bytes, 0);
    for (size_t i = 0; i < 16; ++i)
      if ((bytes[i] & 0x7f) != 0x7f) {
        ASSERT_EQ(fp8[i], static_cast<double>(numerics::from_e4m3(bytes[i]))) << int{bytes[i]};
      }
    const std::vector<double> f16 = decoded<gpu::F16Format>(bytes, 0);
    const std::vector<double> f32 = decoded<gpu::F32Format>(bytes, 0);
    for (size_t i = 0; i < 8; ++i) {
      uint16_t code;
      std::memcpy(&code, &bytes[2 * i], 2);
      if (std::isfinite(numerics::from_fp16(code))) {
        ASSERT_EQ(f16[i], static_cast<double>(numerics::from_fp16(code))) << code;
      }
    }
    for (size_t i = 0; i < 4; ++i) {
      float value;
      std::memcpy(&value, &bytes[4 * i], 4);
      if (std::isfinite(value) && std::abs(value) > 0x1p-100f && std::abs(value) < 0x1p127f) {
        ASSERT_EQ(f32[i], static_cast<double>(value));
      }
    }
  }
}

}  // namespace
}  // namespace sinter
