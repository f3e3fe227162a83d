// Packed NVFP4 by VDPBF16PS: exact products. Belongs inside a target region, before nvfp4_tile_avx512.h.
#pragma once

namespace sinter::kernels::cpu {
namespace {

struct Bf16Pairs {
  using X = uint16_t;
  static constexpr int kVectors = 8;         // that the weights of a block become
  static constexpr int kTileWidth = 64;      // X a tile's columns take
  static constexpr float kFactor = 0x1p57f;  // takes back the biases of activations and scales
  static constexpr int kStreams = 1;
  static constexpr int64_t kPrefetchBytes = cpu::kPrefetchBytes;

  SINTER_INLINE static __m512i table() { return e2m1_as_bf16(); }

  SINTER_INLINE static void look_up(__m512i codes, __m512i table, __m512i* w) {
    look_up_nibbles(codes, table, w);
  }

  static void put_block(X* x, int block, const float* values) {
    const __m256i halves = upper_halves(multiply(load(values), all(kActivationBias)));
    // As codes are looked up: i and i + 4 of a dword together.
    const __m256i order = _mm256_setr_epi16(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(x + 16 * block), _mm256_permutexvar_epi16(order, halves));
  }

  SINTER_INLINE static Floats block_sum(const __m512i* w, const X* x, int block) {
    Floats sum = zeros();
    SINTER_UNROLL
    for (int i = 0; i < 8; ++i) sum = dot_bf16(sum, w[i], broadcast_dword(x + 16 * block + 2 * i));
    return sum;
  }
};

}  // namespace
}  // namespace sinter::kernels::cpu
