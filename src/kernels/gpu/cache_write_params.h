// Numbers of cuda.cache_write. Grid (T), any multiple of 32 threads up to 1024.
#pragma once

namespace sinter::gpu {

struct CacheWriteParams {
  int W, P;
  long long x_stride;           // elements
  long long page_table_stride;  // entries a sequence
};

}  // namespace sinter::gpu
