// Philox4x32-10 (Salmon et al., SC 2011), the same draws as kernels/cpu/philox.h.
#pragma once

#include "gpu/target.h"

namespace sinter::gpu {

// First word of the block: uniform over 32 bits.
SINTER_DEVICE U32 philox_word(U64 seed, U64 draw_idx) {
  U32 c[4] = {static_cast<U32>(draw_idx), static_cast<U32>(draw_idx >> 32), 0, 0};
  U32 key[2] = {static_cast<U32>(seed), static_cast<U32>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const U64 left = static_cast<U64>(0xd2511f53u) * c[0];
    const U64 right = static_cast<U64>(0xcd9e8d57u) * c[2];
    c[0] = static_cast<U32>(right >> 32) ^ c[1] ^ key[0];
    c[1] = static_cast<U32>(right);
    c[2] = static_cast<U32>(left >> 32) ^ c[3] ^ key[1];
    c[3] = static_cast<U32>(left);
    key[0] += 0x9e3779b9u;
    key[1] += 0xbb67ae85u;
  }
  return c[0];
}

}  // namespace sinter::gpu
