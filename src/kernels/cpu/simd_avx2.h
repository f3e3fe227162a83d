// Vectors of 8 floats, for the headers that are written for any width. Belongs inside a target region.
#pragma once

#define SINTER_VECTORISED SINTER_VECTORISED_AVX2

namespace sinter::kernels::cpu {
namespace {

using Floats = __m256;
inline constexpr int kWidth = 8;

SINTER_INLINE Floats zeros() { return _mm256_setzero_ps(); }
SINTER_INLINE Floats all(float value) { return _mm256_set1_ps(value); }
SINTER_INLINE Floats load(const float* from) { return _mm256_loadu_ps(from); }
SINTER_INLINE void store(float* to, Floats a) { _mm256_storeu_ps(to, a); }
SINTER_INLINE Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
SINTER_INLINE Floats multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
SINTER_INLINE Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
SINTER_INLINE Floats divide(Floats a, Floats b) { return _mm256_div_ps(a, b); }
SINTER_INLINE Floats largest(Floats a, Floats b) { return _mm256_max_ps(a, b); }

SINTER_INLINE Floats load_bf16(const uint16_t* from) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

// To nearest even like numerics::to_bf16; the result's lower halves are zero.
SINTER_INLINE Floats round_bf16(Floats a) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i rounded = _mm256_and_si256(up, _mm256_set1_epi32(static_cast<int>(0xffff0000u)));
  return _mm256_blendv_ps(_mm256_castsi256_ps(rounded), _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)),
                          _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}
SINTER_INLINE void store_bf16(uint16_t* to, Floats a) {
  const __m256i halves = _mm256_srli_epi32(_mm256_castps_si256(round_bf16(a)), 16);
  const __m128i packed =
      _mm_packus_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), packed);
}

// 2 ulp; clamped to the range of normal floats.
SINTER_INLINE Floats exp(Floats x) {
  x = _mm256_min_ps(_mm256_max_ps(x, all(-87.0f)), all(88.0f));
  const Floats n =
      _mm256_round_ps(multiply(x, all(1.44269504f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  Floats r = _mm256_fnmadd_ps(n, all(0.693359375f), x);
  r = _mm256_fnmadd_ps(n, all(-2.12194440e-4f), r);
  Floats p = all(1.9875691500e-4f);
  p = multiply_add(p, r, all(1.3981999507e-3f));
  p = multiply_add(p, r, all(8.3334519073e-3f));
  p = multiply_add(p, r, all(4.1665795894e-2f));
  p = multiply_add(p, r, all(1.6666665459e-1f));
  p = multiply_add(p, r, all(5.0000001201e-1f));
  p = add(multiply_add(multiply(r, r), p, r), all(1.0f));
  const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent));
}

// Lane r is the sum of v[r]. A tree of additions, always the same.
SINTER_INLINE Floats sums_of_8(const Floats* v) {
  Floats a[4], b[2];
  SINTER_UNROLL
  for (int i = 0; i < 4; ++i) a[i] = _mm256_hadd_ps(v[2 * i], v[2 * i + 1]);
  SINTER_UNROLL
  for (int i = 0; i < 2; ++i) b[i] = _mm256_hadd_ps(a[2 * i], a[2 * i + 1]);
  return add(_mm256_permute2f128_ps(b[0], b[1], 0x20), _mm256_permute2f128_ps(b[0], b[1], 0x31));
}
SINTER_INLINE void store_sums_of_16(const Floats* v, float factor, float* out) {
  store(out, multiply(sums_of_8(v), all(factor)));
  store(out + 8, multiply(sums_of_8(v + 8), all(factor)));
}

// Rows of bf16 against activations: what a register holds of either.
struct Bf16Dot {
  using X = float;  // an activation as it is prepared
  using W = Floats;
  static constexpr int kStep = 8;
  static X from_bf16(uint16_t bits) { return numerics::from_bf16(bits); }
  SINTER_INLINE static W load_w(const uint16_t* from) { return load_bf16(from); }
  // The last `count` columns of a row, then zeros.
  SINTER_INLINE static W load_w_cut(const uint16_t* from, int64_t count) {
    uint16_t columns[kStep] = {};
    std::memcpy(columns, from, static_cast<size_t>(count) * sizeof *from);
    return load_w(columns);
  }
  // out[4 * i + j] = x[i] . w[j] over D columns; x is filled up with zeros to a multiple of kStep.
  SINTER_INLINE static void dots_4x4(const X* const* x, const uint16_t* const* w, int64_t D, float* out) {
    // Two rows of x at a time: eight sums and what feeds them fill the sixteen registers.
    for (int half = 0; half < 2; ++half) {
      Floats sums[8];
      SINTER_UNROLL
      for (Floats& sum : sums) sum = zeros();
      int64_t d = 0;
      for (; d + kStep <= D; d += kStep) {
        const W rows[4] = {load_w(w[0] + d), load_w(w[1] + d), load_w(w[2] + d), load_w(w[3] + d)};
        add_products(x + 2 * half, d, rows, sums);
      }
      if (d < D) {
        W rows[4];
        for (int j = 0; j < 4; ++j) rows[j] = load_w_cut(w[j] + d, D - d);
        add_products(x + 2 * half, d, rows, sums);
      }
      store(out + 8 * half, sums_of_8(sums));
    }
  }

 private:
  SINTER_INLINE static void add_products(const X* const* x, int64_t d, const W* rows, Floats* sums) {
    const Floats x0 = load(x[0] + d), x1 = load(x[1] + d);
    SINTER_UNROLL
    for (int j = 0; j < 4; ++j) {
      sums[j] = cpu::multiply_add(rows[j], x0, sums[j]);
      sums[4 + j] = cpu::multiply_add(rows[j], x1, sums[4 + j]);
    }
  }
};

}  // namespace
}  // namespace sinter::kernels::cpu
