// Host memory, usually a mapped file, into a GPU's: threads copy into pinned buffers while the GPU fetches
// those before.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/thread_pool.h"
#include "device/gpu_stream.h"

namespace sinter {

class GpuUploader {
 public:
  // Takes num_buffers * buffer_bytes of pinned memory at the first copy. `pool` outlives it.
  GpuUploader(const GpuDevice& device, ThreadPool& pool, size_t buffer_bytes = size_t{32} << 20,
              int num_buffers = 4);
  ~GpuUploader();  // waits
  GpuUploader(const GpuUploader&) = delete;
  GpuUploader& operator=(const GpuUploader&) = delete;

  // Small pieces are gathered, large ones cut. `from` is free again on return; `to` is filled after finish().
  void copy(std::byte* to, const std::byte* from, size_t size_bytes);
  // Waits until everything is in the GPU's memory. Throws Error for what failed.
  void finish();
  // Releases the pinned memory; the next copy takes it again.
  void release();

  uint64_t copied_bytes() const { return copied_bytes_; }
  // From the first copy to the end of the last finish(), waits for more to copy included.
  double elapsed_s() const { return elapsed_s_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct PinnedBuffer;
  void start();             // takes the buffers
  PinnedBuffer& current();  // with room; waits until the GPU has fetched what was in it
  void pass_on();           // to the next buffer

  GpuDevice device_;
  ThreadPool& pool_;
  GpuStream stream_;
  size_t buffer_bytes_;
  size_t num_buffers_;
  std::vector<PinnedBuffer> buffers_;
  size_t buffer_idx_ = 0, used_bytes_ = 0;  // of buffers_[buffer_idx_]
  std::optional<Clock::time_point> begin_;
  uint64_t copied_bytes_ = 0;
  double elapsed_s_ = 0;
};

}  // namespace sinter
