// Where row products (few tokens, weights from memory into registers) end and tile products begin.
#pragma once

#include <cstdint>

namespace sinter::kernels::cuda {

// Not measured yet: a row product reads every weight once for up to 32 tokens, a tile product wastes its 64
// columns below that.
constexpr int64_t kMostRowTokens = 32;

// Eights of tokens that a row product's block takes: 1, 2 or 4.
constexpr int row_tiles(int64_t num_tokens) { return num_tokens <= 8 ? 1 : num_tokens <= 16 ? 2 : 4; }

// Tokens of a tile product's block.
constexpr int tile_columns(int64_t num_tokens) { return num_tokens <= 64 ? 64 : 128; }

}  // namespace sinter::kernels::cuda
