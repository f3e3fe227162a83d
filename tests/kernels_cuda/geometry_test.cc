// Launch geometry: shared memory fits every architecture of the table, whatever the shapes of known models.
#include <gtest/gtest.h>

#include "device/arch.h"
#include "kernels/gpu/attention_params.h"
#include "kernels/gpu/indexer_params.h"
#include "kernels/gpu/moe_ffn_params.h"
#include "kernels/gpu/router_params.h"
#include "kernels/gpu/row_product_params.h"
#include "kernels/gpu/tile_product_params.h"

namespace sinter {
namespace {

TEST(Geometry, SharedMemoryFitsEveryArchitecture) {
  int64_t limit = INT64_MAX;
  for (const Arch& arch : archs()) limit = std::min(limit, arch.block_shared_bytes);
  for (const int columns : {64, 128}) EXPECT_LE(gpu::tile_shared_bytes(columns), limit);
  for (const int row_warps : {1, 2, 4})
    for (const int q_parts : {1, 3}) EXPECT_LE(gpu::gqa_shared_bytes(256, 256, row_warps, q_parts), limit);
  EXPECT_LE(gpu::mla_shared_bytes(512, 64, 2, 1), limit);
  EXPECT_LE(gpu::mla_shared_bytes(512, 64, 1, 3), limit);
  EXPECT_LE(gpu::indexer_shared_bytes(64, 128, 3), limit);
  EXPECT_LE(gpu::router_shared_bytes(gpu::kMaxRouterExperts), limit);
  EXPECT_LE(gpu::moe_sort_shared_bytes(gpu::kMaxExperts), limit);
}

TEST(Geometry, TilesCoverEveryRouting) {
  // All slots on one expert, and one slot each.
  EXPECT_EQ(gpu::moe_max_tiles(1, 8, 256, 8), 8);
  EXPECT_GE(gpu::moe_max_tiles(100, 8, 1, 64), (800 + 63) / 64);
  // Every expert one slot over a whole tile.
  EXPECT_GE(gpu::moe_max_tiles(9 * 16, 1, 16, 8), 32);
}

TEST(Geometry, ThreadsFollowFromTheProblem) {
  EXPECT_EQ(gpu::row_product_threads(6144, 32), 256);
  EXPECT_EQ(gpu::row_product_threads(256, 32), 64);
  EXPECT_EQ(gpu::row_product_threads(1, 4), 32);
}

}  // namespace
}  // namespace sinter
