// Tensor cores through mma.sync.m16n8k16 with bf16 operands and float32 sums, on every architecture since
// SM80.
//
// With g = lane / 4 and t = lane % 4 a lane holds, as pairs of neighbours along k,
//   a[0..3]: rows g, g+8, g, g+8 of A, k = 2t, 2t+1 (twice), then 2t+8, 2t+9 (twice)
//   b[0..1]: column g of B, k = 2t, 2t+1, then 2t+8, 2t+9
//   c[0..3]: row g columns 2t, 2t+1, then row g+8 columns 2t, 2t+1
// Which k a lane's pairs stand for is free as long as A and B agree: kernels give every lane neighbouring k.
#pragma once

#include "gpu/warp.h"

namespace sinter::gpu {

// Two floats to bf16, `low` in the lower half.
SINTER_DEVICE U32 pack_bf16(float low, float high) {
#if defined(__CUDACC__)
  U32 pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return to_bf16(low) | static_cast<U32>(to_bf16(high)) << 16;
#endif
}

// value = sum of parts, kParts bf16 each rounded from what is left.
template <int kParts>
SINTER_DEVICE void split_pair(float low, float high, U32 (&parts)[kParts]) {
  SINTER_UNROLL
  for (int i = 0; i < kParts; ++i) {
    parts[i] = pack_bf16(low, high);
    low -= from_bf16(parts[i] & 0xffff);
    high -= from_bf16(parts[i] >> 16);
  }
}

// Products of pairs; subnormals count.
SINTER_DEVICE U32 multiply_bf16x2(U32 a, U32 b) {
#if defined(__CUDACC__)
  U32 product;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(product) : "r"(a), "r"(b), "r"(0x80008000u));
  return product;
#else
  return pack_bf16(from_bf16(a & 0xffff) * from_bf16(b & 0xffff), from_bf16(a >> 16) * from_bf16(b >> 16));
#endif
}

// Bytes of (a, b), 0..3 and 4..7, that the four nibbles of `selector` name.
SINTER_DEVICE U32 pick_bytes(U32 a, U32 b, U32 selector) {
#if defined(__CUDACC__)
  return __byte_perm(a, b, selector);
#else
  const U64 bytes = static_cast<U64>(b) << 32 | a;
  U32 picked = 0;
  for (int i = 0; i < 4; ++i)
    picked |= static_cast<U32>(bytes >> (selector >> (4 * i) & 7) * 8 & 0xff) << (8 * i);
  return picked;
#endif
}

SINTER_DEVICE void mma(float (&c)[4], const U32 (&a)[4], const U32 (&b)[2]) {
#if defined(__CUDACC__)
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  struct Operands {
    U32 a[4], b[2];
  };
  const Operands* lanes = simt::gather(Operands{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}});
  const int g = lane_idx() / 4, t = lane_idx() % 4;
  for (int i = 0; i < 4; ++i) {
    const int column = 2 * t + i % 2;
    double sum = 0;
    for (int k = 0; k < 16; ++k) {
      const U32 left = lanes[g * 4 + k % 8 / 2].a[k / 8 * 2 + i / 2];
      const U32 right = lanes[column * 4 + k % 8 / 2].b[k / 8];
      sum += static_cast<double>(from_bf16(left >> k % 2 * 16 & 0xffff)) *
             from_bf16(right >> k % 2 * 16 & 0xffff);
    }
    c[i] += static_cast<float>(sum);
  }
#endif
}

// Four 8x8 matrices of 16-bit elements from shared memory: lane i names row i % 8 of matrix i / 8, 16 bytes.
// Register j gets elements 2t, 2t+1 of row g of matrix j.
SINTER_DEVICE void load_matrices(U32 (&r)[4], const void* row) {
#if defined(__CUDACC__)
  const U32 address = static_cast<U32>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
#else
  const void* const* rows = simt::gather(row);
  for (int j = 0; j < 4; ++j) r[j] = static_cast<const U32*>(rows[8 * j + lane_idx() / 4])[lane_idx() % 4];
#endif
}

}  // namespace sinter::gpu
