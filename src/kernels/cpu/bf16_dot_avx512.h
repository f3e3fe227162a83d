// Dot products by VDPBF16PS. Belongs inside a target region, after simd_avx512.h.
#pragma once

namespace sinter::kernels::cpu {
namespace {

SINTER_INLINE Floats dot_bf16(Floats sum, __m512i a, __m512i b) {
  return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

// Rows of bf16 against activations: what a register holds of either.
struct Bf16Dot {
  using X = uint16_t;  // an activation as it is prepared
  using W = __m512i;
  static constexpr int kStep = 32;
  static X from_bf16(uint16_t bits) { return bits; }
  SINTER_INLINE static W load_w(const uint16_t* from) { return _mm512_loadu_si512(from); }
  // The last `count` columns of a row, then zeros.
  SINTER_INLINE static W load_w_cut(const uint16_t* from, int64_t count) {
    alignas(64) uint16_t columns[kStep] = {};
    std::memcpy(columns, from, static_cast<size_t>(count) * sizeof *from);
    return load_w(columns);
  }
  SINTER_INLINE static Floats multiply_add(Floats sum, W w, const X* x) {
    return dot_bf16(sum, w, _mm512_loadu_si512(x));
  }
  SINTER_INLINE static void put16(X* x, int64_t k, const float* values) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(x + k), upper_halves(load(values)));
  }
  // out[4 * i + j] = x[i] . w[j] over D columns; x is filled up with zeros to a multiple of kStep.
  SINTER_INLINE static void dots_4x4(const X* const* x, const uint16_t* const* w, int64_t D, float* out) {
    Floats sums[16];
    SINTER_UNROLL
    for (Floats& sum : sums) sum = zeros();
    int64_t d = 0;
    for (; d + kStep <= D; d += kStep) {
      const W rows[4] = {load_w(w[0] + d), load_w(w[1] + d), load_w(w[2] + d), load_w(w[3] + d)};
      add_products(x, d, rows, sums);
    }
    if (d < D) {
      W rows[4];
      for (int j = 0; j < 4; ++j) rows[j] = load_w_cut(w[j] + d, D - d);
      add_products(x, d, rows, sums);
    }
    store(out, sums_of_16(sums));
  }

 private:
  SINTER_INLINE static void add_products(const X* const* x, int64_t d, const W* rows, Floats* sums) {
    SINTER_UNROLL
    for (int i = 0; i < 4; ++i) {
      const __m512i columns = _mm512_loadu_si512(x[i] + d);
      SINTER_UNROLL
      for (int j = 0; j < 4; ++j) sums[4 * i + j] = dot_bf16(sums[4 * i + j], rows[j], columns);
    }
  }
};

}  // namespace
}  // namespace sinter::kernels::cpu
