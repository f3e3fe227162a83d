// The packed form of NVFP4 matrices (WeightLayout::kCpuTile16), and packing.
//
// A tile is 16 rows x 64 columns in 576 bytes: one line with the four scales of each row, then eight lines,
// line j with the j-th dword (eight codes) of every row. Lane = row, so kernels have no sums across lanes,
// and read strictly ascending addresses. Codes are only transposed. Scales are written as e5m3, which has all
// e4m3 values as normal numbers: shifted to a float's exponent they are scale * 2^-117, and no subnormal
// float slows down an Intel CPU (by 160 cycles each).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "kernels/kernel.h"

namespace sinter::kernels::cpu {

inline constexpr int64_t kTileColumns = 64;
inline constexpr int64_t kTileBytes = 576;
inline constexpr int kTileBlocks = 4;  // of 16 columns, with a scale each

constexpr bool fits_tiles(int64_t N, int64_t K) { return N % 16 == 0 && K % kTileColumns == 0; }
constexpr int64_t tiled_bytes(int64_t N, int64_t K) { return N / 16 * (K / kTileColumns) * kTileBytes; }

// e4m3 as e5m3 without subnormals, of exponent bias 10. Scales have no sign.
constexpr uint8_t e5m3_of_e4m3(uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  if (exponent != 0) return static_cast<uint8_t>((exponent + 3) << 3 | mantissa);
  if (mantissa == 0) return 0;
  const int top = mantissa >= 4 ? 2 : mantissa >= 2 ? 1 : 0;
  return static_cast<uint8_t>((top + 1) << 3 | (mantissa << (3 - top) & 7));
}
inline constexpr std::array<uint8_t, 256> kE5m3OfE4m3 = [] {
  std::array<uint8_t, 256> table{};
  for (size_t code = 0; code < table.size(); ++code) table[code] = e5m3_of_e4m3(static_cast<uint8_t>(code));
  return table;
}();

// Groups of 16 rows [begin, end) of a matrix in checkpoint form.
inline void pack_tiles(const ops::Weight& weight, int64_t begin, int64_t end, uint8_t* out) {
  const auto* codes = weight.data.data_as<uint8_t>();
  const auto* scales = weight.scale.data_as<uint8_t>();
  out += begin * (weight.K / kTileColumns) * kTileBytes;
  for (int64_t row = begin * 16; row < end * 16; row += 16) {
    for (int64_t k = 0; k < weight.K; k += kTileColumns, out += kTileBytes) {
      for (int64_t lane = 0; lane < 16; ++lane) {
        for (int64_t b = 0; b < kTileBlocks; ++b)
          out[4 * lane + b] = kE5m3OfE4m3[scales[(row + lane) * (weight.K / 16) + k / 16 + b]];
        const uint8_t* from = codes + (row + lane) * (weight.K / 2) + k / 2;
        for (int j = 0; j < 8; ++j) std::memcpy(out + 64 + 64 * j + 4 * lane, from + 4 * j, 4);
      }
    }
  }
}

// KernelInfo::packed_bytes and pack of the rows that read tiles. Experts lie one after the other, each as
// gate, up, down.
inline size_t packed_tile_bytes(const ops::Weights& weights) {
  if (const auto* weight = std::get_if<ops::Weight>(&weights))
    return static_cast<size_t>(tiled_bytes(weight->N, weight->K));
  const auto& experts = std::get<ops::MoeWeights>(weights);
  const ops::Weight& gate = experts.gate.front();
  return experts.gate.size() * static_cast<size_t>(3 * tiled_bytes(gate.N, gate.K));
}

inline void pack_tiles(LaunchContext& context, const ops::Weights& weights, std::span<std::byte> out) {
  context.pool.run([&](int worker_idx) {
    auto* to = reinterpret_cast<uint8_t*>(out.data());
    const auto pack = [&](const ops::Weight& weight) {
      const auto [begin, end] = context.pool.part(worker_idx, weight.N / 16);
      pack_tiles(weight, begin, end, to);
      to += tiled_bytes(weight.N, weight.K);
    };
    if (const auto* weight = std::get_if<ops::Weight>(&weights)) return pack(*weight);
    const auto& experts = std::get<ops::MoeWeights>(weights);
    for (size_t e = 0; e < experts.gate.size(); ++e) {
      pack(experts.gate[e]);
      pack(experts.up[e]);
      pack(experts.down[e]);
    }
  });
}

}  // namespace sinter::kernels::cpu
