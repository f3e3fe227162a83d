// Packed NVFP4 by VDPBF16PS: exact products. Belongs inside a target region, before nvfp4_tile_avx512.h.
#pragma once

namespace sinter::kernels::cpu {
namespace {

struct Bf16Pairs {
  using X = uint16_t;
  static constexpr int kTileWidth = 64;      // X a tile's columns take
  static constexpr float kFactor = 0x1p57f;  // takes back the biases of activations and scales

  SINTER_INLINE static __m512i table() { return e2m1_as_bf16(); }

  static void put_block(X* x, int block, const float* values) {
    const __m256i halves = upper_halves(multiply(load(values), all(kActivationBias)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(x + 16 * block),
                        _mm256_permutexvar_epi16(pair_order(), halves));
  }

  SINTER_INLINE static Floats block_sum(const __m512i* w, const X* x, int block) {
    Floats sum = zeros();
    SINTER_UNROLL
    for (int i = 0; i < 8; ++i) sum = dot_bf16(sum, w[i], broadcast_pair(x + 16 * block + 2 * i));
    return sum;
  }
};

}  // namespace
}  // namespace sinter::kernels::cpu
