// Numbers of cuda.embedding. Grid (T), any multiple of 32 threads up to 1024.
#pragma once

namespace sinter::gpu {

struct EmbeddingParams {
  int H;
};

}  // namespace sinter::gpu
