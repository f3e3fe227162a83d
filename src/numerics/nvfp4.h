// NVFP4: blocks of 16 e2m1 codes along K, one e4m3 scale a block, one float32 scale a tensor.
//
//   x = e2m1(code) * e4m3(scale_block) * scale_tensor
//
// All spans are row-major with K a multiple of 16, so rows never matter here: element i has its code in
// nibble i % 2 (low first) of byte i / 2 and its scale at i / 16.
#pragma once

#include <cstdint>
#include <span>

namespace sinter::numerics {

inline constexpr int64_t kNvfp4Block = 16;
// Largest code times largest block scale: a tensor's amax is mapped to it.
inline constexpr float kNvfp4Max = 6.0f * 448.0f;

// Both conventions for the scale of a tensor are in use, and they are reciprocal. They are two types so
// that one is never taken for the other.
struct DecodeScale {  // multiplies when decoding: amax / 2688 (weight_scale_2, input_scale)
  float value = 1.0f;
};
struct EncodeScale {  // multiplies when encoding: 2688 / amax (weight_global_scale, input_global_scale)
  float value = 1.0f;
};

constexpr DecodeScale decode_scale(EncodeScale scale) { return {1.0f / scale.value}; }
constexpr EncodeScale encode_scale(DecodeScale scale) { return {1.0f / scale.value}; }

// Largest magnitude; NaN if any value is NaN.
float amax(std::span<const float> values);

// amax / 2688, and 1 for tensors of zeros (and those under 2e-42, whose scale would round to zero).
DecodeScale nvfp4_scale_of_amax(float amax);

// Weights, byte for byte as ModelOpt stores them. codes: values / 2, scales: values / 16. Throws
// Error(kFormat) on infinities and NaN.
DecodeScale quantize_nvfp4(std::span<const float> weights, std::span<uint8_t> codes,
                           std::span<uint8_t> scales);
// The same under a given scale, as gate and up share one.
void quantize_nvfp4(std::span<const float> weights, DecodeScale scale_tensor, std::span<uint8_t> codes,
                    std::span<uint8_t> scales);

// Activations, as the GPU kernels do it in front of an FP4 GEMM. A block over the calibrated amax
// saturates. `scale_tensor` is the reciprocal of the checkpoint's input_scale.
void quantize_nvfp4_activation(std::span<const float> values, EncodeScale scale_tensor,
                               std::span<uint8_t> codes, std::span<uint8_t> scales);

// The code times the block scale is exact, so each value is rounded once.
void dequantize_nvfp4(std::span<const uint8_t> codes, std::span<const uint8_t> scales,
                      DecodeScale scale_tensor, std::span<float> values);

}  // namespace sinter::numerics
