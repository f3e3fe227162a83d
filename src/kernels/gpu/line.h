// 16 bytes at once from global memory, or the first few of them where a row ends or starts at an odd address.
#pragma once

#include "gpu/numerics.h"

namespace sinter::gpu {

struct alignas(16) Line {
  U32 word[4];
};

// Rows of `stride_bytes` whose lines may be read at once.
SINTER_DEVICE bool is_aligned(const void* rows, I64 stride_bytes) {
  return ((reinterpret_cast<U64>(rows) | static_cast<U64>(stride_bytes)) & 15) == 0;
}

// Streamed: read once, not kept in L1. Only of memory that no kernel of the step writes (weights): the
// compiler may move it anywhere.
SINTER_DEVICE Line load_streamed(const void* source) {
#if defined(__CUDACC__)
  Line line;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(line.word[0]), "=r"(line.word[1]), "=r"(line.word[2]), "=r"(line.word[3])
      : "l"(source));
  return line;
#else
  return *static_cast<const Line*>(source);
#endif
}

SINTER_DEVICE Line load_cached(const void* source) { return *static_cast<const Line*>(source); }

// The first `count` elements of T at `source`; zeros behind. Never touches more.
template <typename T>
SINTER_DEVICE Line load_part(const T* source, int count) {
  constexpr int kPerWord = 4 / static_cast<int>(sizeof(T));
  Line line;
  SINTER_UNROLL
  for (int i = 0; i < 4; ++i) {
    line.word[i] = 0;
    SINTER_UNROLL
    for (int j = 0; j < kPerWord; ++j)
      if (i * kPerWord + j < count)
        line.word[i] |= static_cast<U32>(source[i * kPerWord + j]) << (32 / kPerWord * j);
  }
  return line;
}

// Whole lines where the address allows it.
template <typename T>
SINTER_DEVICE Line load_line(const T* source, int count, bool aligned) {
  if (aligned && count >= 16 / static_cast<int>(sizeof(T))) return load_cached(source);
  return load_part(source, count);
}

}  // namespace sinter::gpu
