// Vectors of 16 floats, for the headers that are written for any width. Belongs inside a target region.
#pragma once

#ifndef SINTER_VECTORISED
#define SINTER_VECTORISED SINTER_VECTORISED_AVX512
#endif

namespace sinter::kernels::cpu {
namespace {

using Floats = __m512;
inline constexpr int kWidth = 16;

SINTER_INLINE Floats zeros() { return _mm512_setzero_ps(); }
SINTER_INLINE Floats all(float value) { return _mm512_set1_ps(value); }
SINTER_INLINE Floats load(const float* from) { return _mm512_loadu_ps(from); }
SINTER_INLINE void store(float* to, Floats a) { _mm512_storeu_ps(to, a); }
SINTER_INLINE Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
SINTER_INLINE Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
SINTER_INLINE Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
SINTER_INLINE Floats divide(Floats a, Floats b) { return _mm512_div_ps(a, b); }
SINTER_INLINE Floats largest(Floats a, Floats b) { return _mm512_max_ps(a, b); }

SINTER_INLINE Floats load_bf16(const uint16_t* from) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

// To nearest even like numerics::to_bf16; the result's lower halves are zero.
SINTER_INLINE Floats round_bf16(Floats a) {
  const __m512i bits = _mm512_castps_si512(a);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __m512i rounded = _mm512_and_si512(up, _mm512_set1_epi32(static_cast<int>(0xffff0000u)));
  const auto is_nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
  return _mm512_castsi512_ps(_mm512_mask_mov_epi32(rounded, is_nan, _mm512_set1_epi32(0x7fc00000)));
}
// Of floats whose lower halves are zero.
SINTER_INLINE __m256i upper_halves(Floats a) {
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(a), 16));
}
SINTER_INLINE void store_bf16(uint16_t* to, Floats a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), upper_halves(round_bf16(a)));
}

// 2 ulp; clamped to the range of normal floats.
SINTER_INLINE Floats exp(Floats x) {
  x = _mm512_min_ps(_mm512_max_ps(x, all(-87.0f)), all(88.0f));
  const Floats n = _mm512_roundscale_ps(multiply(x, all(1.44269504f)), 0);
  Floats r = _mm512_fnmadd_ps(n, all(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, all(-2.12194440e-4f), r);
  Floats p = all(1.9875691500e-4f);
  p = multiply_add(p, r, all(1.3981999507e-3f));
  p = multiply_add(p, r, all(8.3334519073e-3f));
  p = multiply_add(p, r, all(4.1665795894e-2f));
  p = multiply_add(p, r, all(1.6666665459e-1f));
  p = multiply_add(p, r, all(5.0000001201e-1f));
  p = add(multiply_add(multiply(r, r), p, r), all(1.0f));
  const __m512i exponent = _mm512_slli_epi32(_mm512_cvtps_epi32(n), 23);
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), exponent));
}

// Lane r is the sum of v[r]. A tree of additions, always the same.
SINTER_INLINE Floats sums_of_16(const Floats* v) {
  Floats a[8], b[4], c[2];
  SINTER_UNROLL
  for (int i = 0; i < 8; ++i)
    a[i] = add(_mm512_unpacklo_ps(v[2 * i], v[2 * i + 1]), _mm512_unpackhi_ps(v[2 * i], v[2 * i + 1]));
  SINTER_UNROLL
  for (int i = 0; i < 4; ++i) {
    const __m512d x = _mm512_castps_pd(a[2 * i]), y = _mm512_castps_pd(a[2 * i + 1]);
    b[i] = add(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)), _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
  }
  SINTER_UNROLL
  for (int i = 0; i < 2; ++i)
    c[i] = add(_mm512_shuffle_f32x4(b[2 * i], b[2 * i + 1], 0x88),
               _mm512_shuffle_f32x4(b[2 * i], b[2 * i + 1], 0xdd));
  return add(_mm512_shuffle_f32x4(c[0], c[1], 0x88), _mm512_shuffle_f32x4(c[0], c[1], 0xdd));
}
SINTER_INLINE void store_sums_of_16(const Floats* v, float factor, float* out) {
  store(out, multiply(sums_of_16(v), all(factor)));
}

}  // namespace
}  // namespace sinter::kernels::cpu
