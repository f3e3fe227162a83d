// The 128x4 tile layout in which block-scaled tensor cores read their scales.
//
// A tile holds 128 rows x 4 K-blocks in 512 bytes; tiles follow each other along K, then along rows.
// Inside a tile, row m and block k lie at (m % 32) * 16 + (m / 32) * 4 + k.
#pragma once

#include <cstdint>
#include <span>

namespace sinter::numerics {

inline constexpr int64_t kScaleTileRows = 128;
inline constexpr int64_t kScaleTileBlocks = 4;
inline constexpr int64_t kScaleTileBytes = kScaleTileRows * kScaleTileBlocks;

// Tiles along each dimension; partly filled ones are whole in memory.
constexpr int64_t num_scale_tiles_rows(int64_t rows) { return (rows + kScaleTileRows - 1) / kScaleTileRows; }
constexpr int64_t num_scale_tiles_blocks(int64_t blocks) {
  return (blocks + kScaleTileBlocks - 1) / kScaleTileBlocks;
}
constexpr int64_t tiled_scales_bytes(int64_t rows, int64_t blocks) {
  return num_scale_tiles_rows(rows) * num_scale_tiles_blocks(blocks) * kScaleTileBytes;
}

constexpr int64_t tiled_scale_offset(int64_t row, int64_t block, int64_t blocks) {
  const int64_t tile = row / kScaleTileRows * num_scale_tiles_blocks(blocks) + block / kScaleTileBlocks;
  return tile * kScaleTileBytes + row % 32 * 16 + row % kScaleTileRows / 32 * 4 + block % kScaleTileBlocks;
}

// scales [rows, blocks] row-major -> tiled [tiled_scales_bytes]. Padding is written as zero: stale bytes
// there decode to NaN and reach the result.
void tile_scales(std::span<const uint8_t> scales, int64_t rows, int64_t blocks, std::span<uint8_t> tiled);
void untile_scales(std::span<const uint8_t> tiled, int64_t rows, int64_t blocks, std::span<uint8_t> scales);

}  // namespace sinter::numerics
