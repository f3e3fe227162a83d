// Launch geometry of the kernels that multiply tiles of weights with many columns (gpu/tile_product.h).
#pragma once

namespace sinter::gpu {

constexpr int kTileRows = 128;  // weight rows of a block
constexpr int kTileK = 64;      // of a step
constexpr int kTileThreads = 256;
constexpr int kTileStages = 2;
constexpr int kTileRowBytes = kTileK * 2 + 16;  // padded: neighbouring rows start in other banks

#ifndef __CUDACC_RTC__  // for hosts: NVRTC takes no host functions
// Dynamic shared memory; over 48 KiB, so the launch must ask for it.
constexpr int tile_shared_bytes(int columns) { return kTileStages * (kTileRows + columns) * kTileRowBytes; }
#endif

}  // namespace sinter::gpu
