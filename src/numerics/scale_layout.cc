#include "numerics/scale_layout.h"

#include <algorithm>

#include "base/error.h"

namespace sinter::numerics {
namespace {

void check_sizes(size_t num_scales, size_t num_tiled, int64_t rows, int64_t blocks) {
  SINTER_CHECK(rows >= 0 && blocks >= 0 && num_scales == static_cast<size_t>(rows * blocks) &&
                   num_tiled == static_cast<size_t>(tiled_scales_bytes(rows, blocks)),
               "scales [{}, {}]: {} bytes row-major, {} tiled", rows, blocks, num_scales, num_tiled);
}

}  // namespace

void tile_scales(std::span<const uint8_t> scales, int64_t rows, int64_t blocks, std::span<uint8_t> tiled) {
  check_sizes(scales.size(), tiled.size(), rows, blocks);
  std::ranges::fill(tiled, uint8_t{0});
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t block = 0; block < blocks; ++block)
      tiled[tiled_scale_offset(row, block, blocks)] = scales[row * blocks + block];
}

void untile_scales(std::span<const uint8_t> tiled, int64_t rows, int64_t blocks, std::span<uint8_t> scales) {
  check_sizes(scales.size(), tiled.size(), rows, blocks);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t block = 0; block < blocks; ++block)
      scales[row * blocks + block] = tiled[tiled_scale_offset(row, block, blocks)];
}

}  // namespace sinter::numerics
