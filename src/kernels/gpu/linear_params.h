// Numbers of cuda.linear_decode and cuda.linear_prefill.
//   decode:  grid (ceil(N / 16), ceil(T / (8 * SINTER_TILES))), row_product_threads(K, lane_k) threads
//   prefill: grid (ceil(N / 128), ceil(T / SINTER_COLUMNS)), 256 threads,
//            tile_shared_bytes(SINTER_COLUMNS) of dynamic shared memory
#pragma once

namespace sinter::gpu {

struct LinearParams {
  int T, N, K;
  int accumulate;                // add to what y holds
  long long x_stride, y_stride;  // elements
};

}  // namespace sinter::gpu
