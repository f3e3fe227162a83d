// e2m1 codes looked up as 16-bit numbers, by VPERMW. Belongs inside a target region, after simd_avx512.h.
#pragma once

namespace sinter::kernels::cpu {
namespace {

// w[i] has what the i-th nibbles of the 32 words stand for. The table of 16 comes twice: a shifted word is
// looked up by its low five bits, and needs no mask then.
SINTER_INLINE void look_up_nibbles(__m512i words, __m512i table, __m512i* w) {
  w[0] = _mm512_permutexvar_epi16(words, table);
  w[1] = _mm512_permutexvar_epi16(_mm512_srli_epi16(words, 4), table);
  w[2] = _mm512_permutexvar_epi16(_mm512_srli_epi16(words, 8), table);
  w[3] = _mm512_permutexvar_epi16(_mm512_srli_epi16(words, 12), table);
}

SINTER_INLINE __m512i e2m1_as_bf16() {
  alignas(64) static constexpr uint16_t kTable[32] = {
      0x0000, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0, 0x8000, 0xbf00, 0xbf80,
      0xbfc0, 0xc000, 0xc040, 0xc080, 0xc0c0, 0x0000, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040,
      0x4080, 0x40c0, 0x8000, 0xbf00, 0xbf80, 0xbfc0, 0xc000, 0xc040, 0xc080, 0xc0c0};
  return _mm512_load_si512(kTable);
}

SINTER_INLINE __m512i broadcast_dword(const void* from) {
  int32_t dword;
  std::memcpy(&dword, from, sizeof dword);
  return _mm512_set1_epi32(dword);
}

// VDPBF16PS takes subnormals for zero, and arithmetic on float32 ones costs an Intel CPU 160 cycles: nothing
// may come near them. So bf16 activations carry 2^60 where scales are small.
inline constexpr float kActivationBias = 0x1p60f;

}  // namespace
}  // namespace sinter::kernels::cpu
