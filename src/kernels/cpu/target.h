// How a file of vector code says for which instructions it is compiled, and where their intrinsics come from.
//
// No file gets -mavx flags: inline functions it shares with the rest of the program would be compiled for
// them too, and the linker keeps any one copy. A file includes everything first and then puts its own code,
// all of it in an unnamed namespace, between SINTER_TARGET_BEGIN_* and SINTER_TARGET_END. Lambdas take
// SINTER_VECTORISED after their parameters: clang does not carry the region over to them.
//
// With SINTER_EMULATE_AVX512 the intrinsics come from SIMDe, so that any machine can check the AVX-512 files.
#pragma once

#ifdef SINTER_EMULATE_AVX512
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx2.h>
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>

// What SIMDe 0.7.4 lacks.
// NOLINTBEGIN(bugprone-reserved-identifier)
inline __m512i _mm512_cvtepu16_epi32(__m256i a) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(a))),
                            _mm256_cvtepu16_epi32(_mm256_extracti128_si256(a, 1)), 1);
}
inline __m256i _mm512_cvtepi32_epi16(__m512i a) {
  alignas(64) int values[16];
  alignas(32) short low[16];
  _mm512_store_si512(values, a);
  for (int i = 0; i < 16; ++i) low[i] = static_cast<short>(values[i]);
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(low));
}
inline __m512i _mm512_cvtps_epi32(__m512 a) {
  const __m256i low = _mm256_cvtps_epi32(_mm512_castps512_ps256(a));
  const __m256d high = _mm512_extractf64x4_pd(_mm512_castps_pd(a), 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), _mm256_cvtps_epi32(_mm256_castpd_ps(high)), 1);
}
inline __m512 _mm512_cvtepi32_ps(__m512i a) {
  const __m512d low = _mm512_castps_pd(_mm512_castps256_ps512(_mm256_cvtepi32_ps(_mm512_castsi512_si256(a))));
  const __m256 high = _mm256_cvtepi32_ps(_mm512_extracti64x4_epi64(a, 1));
  return _mm512_castpd_ps(_mm512_insertf64x4(low, _mm256_castps_pd(high), 1));
}
#define _mm512_shuffle_f32x4(a, b, order) \
  _mm512_castsi512_ps(_mm512_shuffle_i32x4(_mm512_castps_si512(a), _mm512_castps_si512(b), order))
// NOLINTEND(bugprone-reserved-identifier)
#elif defined(__clang__)
#include <immintrin.h>
#else
// GCC 12 takes the undefined vectors inside its own intrinsics for a mistake.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

#define SINTER_AVX2 "avx2,fma,f16c"
#define SINTER_AVX512_VNNI "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni"
#define SINTER_AVX512 "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bf16"

#define SINTER_PRAGMA(text) _Pragma(#text)
#if defined(SINTER_EMULATE_AVX512)
#define SINTER_TARGET_BEGIN_AVX2
#define SINTER_TARGET_BEGIN_AVX512
#define SINTER_TARGET_BEGIN_AVX512_VNNI
#define SINTER_TARGET_END
#define SINTER_VECTORISED_AVX2
#define SINTER_VECTORISED_AVX512
#define SINTER_VECTORISED_AVX512_VNNI
#elif defined(__clang__)
#define SINTER_TARGET_BEGIN(isa) \
  SINTER_PRAGMA(clang attribute push(__attribute__((target(isa))), apply_to = function))
#define SINTER_TARGET_BEGIN_AVX2 SINTER_TARGET_BEGIN(SINTER_AVX2)
#define SINTER_TARGET_BEGIN_AVX512 SINTER_TARGET_BEGIN(SINTER_AVX512)
#define SINTER_TARGET_BEGIN_AVX512_VNNI SINTER_TARGET_BEGIN(SINTER_AVX512_VNNI)
#define SINTER_TARGET_END SINTER_PRAGMA(clang attribute pop)
#define SINTER_VECTORISED_AVX2 __attribute__((target(SINTER_AVX2)))
#define SINTER_VECTORISED_AVX512 __attribute__((target(SINTER_AVX512)))
#define SINTER_VECTORISED_AVX512_VNNI __attribute__((target(SINTER_AVX512_VNNI)))
#else
#define SINTER_TARGET_BEGIN(isa) SINTER_PRAGMA(GCC push_options) SINTER_PRAGMA(GCC target(isa))
#define SINTER_TARGET_BEGIN_AVX2 SINTER_TARGET_BEGIN(SINTER_AVX2)
#define SINTER_TARGET_BEGIN_AVX512 SINTER_TARGET_BEGIN(SINTER_AVX512)
#define SINTER_TARGET_BEGIN_AVX512_VNNI SINTER_TARGET_BEGIN(SINTER_AVX512_VNNI)
#define SINTER_TARGET_END SINTER_PRAGMA(GCC pop_options)
#define SINTER_VECTORISED_AVX2
#define SINTER_VECTORISED_AVX512
#define SINTER_VECTORISED_AVX512_VNNI
#endif
