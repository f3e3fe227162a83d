// Weight formats: 16 bytes of a row to pairs of bf16, the operands of the tensor cores. Every value of the
// formats of 16 bits and less, block scales included, is one bf16 or the sum of two, and a float32 the sum of
// three: products and sums are those of float32.
#pragma once

#include "gpu/line.h"
#include "gpu/matrix_params.h"
#include "gpu/mma.h"

namespace sinter::gpu {

// What the formats have in common:
//   kLaneK       weights in 16 bytes
//   kParts       bf16 that make up a weight
//   kSplitPairs  pairs are (k, k + 4) of every 8 neighbours, not (k, k + 1)
//   scales(...)  raw block scales of kLaneK weights from column k of row n
//   decode(...)  pairs[part][kLaneK / 2]
//   finish(...)  from the sum over k to the value
struct UnscaledFormat {
  static constexpr bool kSplitPairs = false;
  static constexpr bool kHasTileScales = false;  // float32 per 128 x 128, applied to sums
  static SINTER_DEVICE U32 scales(const Matrix&, I64, int, int, int) { return 0; }
  static SINTER_DEVICE float finish(float sum, const Matrix&) { return sum; }
};

struct F32Format : UnscaledFormat {
  using Element = U32;  // unit of addresses, one weight
  static constexpr int kLaneK = 4, kParts = 3;
  static SINTER_DEVICE void decode(const Line& line, U32, U32 (&pairs)[kParts][kLaneK / 2]) {
    SINTER_UNROLL
    for (int i = 0; i < 2; ++i) {
      U32 parts[kParts];
      split_pair(float_of(line.word[2 * i]), float_of(line.word[2 * i + 1]), parts);
      for (int part = 0; part < kParts; ++part) pairs[part][i] = parts[part];
    }
  }
};

struct F16Format : UnscaledFormat {
  using Element = U16;
  static constexpr int kLaneK = 8, kParts = 2;
  static SINTER_DEVICE void decode(const Line& line, U32, U32 (&pairs)[kParts][kLaneK / 2]) {
    SINTER_UNROLL
    for (int i = 0; i < 4; ++i) {
      U32 parts[kParts];
      split_pair(from_fp16(line.word[i] & 0xffff), from_fp16(line.word[i] >> 16), parts);
      for (int part = 0; part < kParts; ++part) pairs[part][i] = parts[part];
    }
  }
};

struct Bf16Format : UnscaledFormat {
  using Element = U16;
  static constexpr int kLaneK = 8, kParts = 1;
  static SINTER_DEVICE void decode(const Line& line, U32, U32 (&pairs)[kParts][kLaneK / 2]) {
    SINTER_UNROLL
    for (int i = 0; i < 4; ++i) pairs[0][i] = line.word[i];
  }
};

struct Fp8TensorFormat : UnscaledFormat {
  using Element = U8;
  static constexpr int kLaneK = 16, kParts = 1;
  // A code moved into a bf16's bits is 2^-120 of its value. NaN codes (0x7f, 0xff) give 480.
  static SINTER_DEVICE void decode(const Line& line, U32, U32 (&pairs)[kParts][kLaneK / 2]) {
    SINTER_UNROLL
    for (int i = 0; i < 8; ++i) {
      const U32 codes = pick_bytes(line.word[i / 2], 0, i % 2 == 0 ? 0x1404 : 0x3424);
      const U32 small = (codes & 0x80008000u) | (codes >> 4 & 0x07f007f0u);
      pairs[0][i] = multiply_bf16x2(small, 0x7b807b80u);
    }
  }
  static SINTER_DEVICE float finish(float sum, const Matrix& w) { return sum * w.scale_tensor; }
};

struct Fp8BlockFormat : Fp8TensorFormat {
  static constexpr bool kHasTileScales = true;
  static SINTER_DEVICE float finish(float sum, const Matrix&) { return sum; }
};

// Pairs of codes (j, j + 4) of 8, moved into the bits of bf16: 2^-126 of their values.
SINTER_DEVICE U32 small_e2m1_pair(U32 codes, int j) {
  const int shift = 6 - 4 * j;
  const U32 magnitudes = shift >= 0 ? codes << shift : codes >> -shift;
  return (codes << (12 - 4 * j) & 0x80008000u) | (magnitudes & 0x01c001c0u);
}

// Columns `k` .. of a row of block scales, `count` of them, the first in the low byte.
template <int kMost>
SINTER_DEVICE U32 load_scale_bytes(const U8* scales, int count) {
  U32 bytes = 0;
  SINTER_UNROLL
  for (int i = 0; i < kMost; ++i)
    if (i < count) bytes |= static_cast<U32>(scales[i]) << (8 * i);
  return bytes;
}

struct Nvfp4Format {
  using Element = U8;  // two weights
  static constexpr int kLaneK = 32, kParts = 1;
  static constexpr bool kSplitPairs = true;
  static constexpr bool kHasTileScales = false;
  static SINTER_DEVICE U32 scales(const Matrix& w, I64 n, int K, int k, int count) {
    return load_scale_bytes<2>(static_cast<const U8*>(w.scale) + n * (K / 16) + k / 16, count / 16);
  }
  // One exact product: 2^-126 of the code times 2^118 of the scale; finish() gives back the 2^8.
  static SINTER_DEVICE void decode(const Line& line, U32 scales, U32 (&pairs)[kParts][kLaneK / 2]) {
    SINTER_UNROLL
    for (int block = 0; block < 2; ++block) {
      const U32 scale = bits_of(from_e4m3(scales >> (8 * block) & 0xff) * 0x1p118f);
      const U32 both = pick_bytes(scale, scale, 0x3232);
      SINTER_UNROLL
      for (int i = 0; i < 8; ++i)
        pairs[0][8 * block + i] = multiply_bf16x2(small_e2m1_pair(line.word[2 * block + i / 4], i % 4), both);
    }
  }
  static SINTER_DEVICE float finish(float sum, const Matrix& w) { return sum * 256 * w.scale_tensor; }
};

struct Mxfp4Format {
  using Element = U8;  // two weights
  static constexpr int kLaneK = 32, kParts = 1;
  static constexpr bool kSplitPairs = true;
  static constexpr bool kHasTileScales = false;
  static SINTER_DEVICE U32 scales(const Matrix& w, I64 n, int K, int k, int count) {
    return load_scale_bytes<1>(static_cast<const U8*>(w.scale) + n * (K / 32) + k / 32, count / 32);
  }
  static SINTER_DEVICE void decode(const Line& line, U32 scales, U32 (&pairs)[kParts][kLaneK / 2]) {
    const U32 scale = bits_of(from_e8m0(scales)) >> 16;
    const U32 both = scale | scale << 16;
    SINTER_UNROLL
    for (int i = 0; i < 16; ++i)
      pairs[0][i] =
          multiply_bf16x2(multiply_bf16x2(small_e2m1_pair(line.word[i / 4], i % 4), 0x7e807e80u), both);
  }
  static SINTER_DEVICE float finish(float sum, const Matrix&) { return sum; }
};

// As SINTER_FORMAT: every matrix says itself.
struct MixedFormat {
  static SINTER_DEVICE float finish(float sum, const Matrix& w) {
    switch (w.format) {
      case kFp8Tensor: return Fp8TensorFormat::finish(sum, w);
      case kNvfp4: return Nvfp4Format::finish(sum, w);
      default: return sum;
    }
  }
};

// Bytes of a row of K weights.
template <typename Format>
SINTER_DEVICE I64 row_bytes(int K) {
  return static_cast<I64>(K) * 16 / Format::kLaneK;
}

// kLaneK weights from column k of row n, of which `count` exist; zeros for the others and for n < 0.
template <typename Format>
struct PackedLine {
  Line line = {};
  U32 scales = 0;

  SINTER_DEVICE void load(const Matrix& w, I64 n, int K, int k, int count, bool aligned) {
    if (n < 0 || count <= 0) {
      line = {};
      scales = 0;
      return;
    }
    using Element = typename Format::Element;
    const U8* row = static_cast<const U8*>(w.data) + n * row_bytes<Format>(K) + row_bytes<Format>(k);
    if (aligned && count >= Format::kLaneK)
      line = load_streamed(row);
    else
      line = load_part(reinterpret_cast<const Element*>(row),
                       count * 16 / (Format::kLaneK * static_cast<int>(sizeof(Element))));
    scales = Format::scales(w, n, K, k, count);
  }
  SINTER_DEVICE void decode(U32 (&pairs)[Format::kParts][Format::kLaneK / 2]) const {
    Format::decode(line, scales, pairs);
  }
};

}  // namespace sinter::gpu
