#include "device/gpu_uploader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "device/gpu_memory.h"

namespace sinter {
namespace {

// Less than this one thread copies faster than others wake up.
constexpr size_t kMinParallelBytes = size_t{512} << 10;
// So that no two threads share a page, nor a cache line of the pinned memory for long.
constexpr size_t kGrainBytes = size_t{64} << 10;
constexpr size_t kAlignment = 64;

// Maps the pages of a file in one call rather than by a fault each; elsewhere it changes nothing, and a
// kernel older than 5.14 does not know it.
void populate(const std::byte* data, size_t size_bytes) {
#ifdef MADV_POPULATE_READ
  static const auto page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const size_t into_page = reinterpret_cast<uintptr_t>(data) % page_bytes;
  (void)::madvise(const_cast<std::byte*>(data) - into_page, into_page + size_bytes, MADV_POPULATE_READ);
#else
  (void)data, (void)size_bytes;
#endif
}

}  // namespace

struct GpuUploader::PinnedBuffer {
  PinnedBuffer(const GpuDevice& device, size_t size_bytes)
      : memory(pinned_buffer(device, size_bytes)), fetched(device, GpuEvent::Kind::kUntimed) {}

  Buffer memory;
  GpuEvent fetched;  // reached when the GPU has all that was last in it
  bool is_in_flight = false;
};

GpuUploader::GpuUploader(const GpuDevice& device, ThreadPool& pool, size_t buffer_bytes, int num_buffers)
    : device_(device),
      pool_(pool),
      stream_(device),
      buffer_bytes_(buffer_bytes / kAlignment * kAlignment),
      num_buffers_(static_cast<size_t>(num_buffers)) {
  SINTER_CHECK(buffer_bytes_ > 0 && num_buffers > 0, "{} buffers of {} bytes", num_buffers, buffer_bytes);
}

GpuUploader::~GpuUploader() {
  try {
    if (!buffers_.empty()) stream_.synchronize();
  } catch (const Error&) {  // told by the next wait of somebody who can
  }
}

void GpuUploader::start() {
  if (!begin_) begin_ = Clock::now();
  if (!buffers_.empty()) return;
  buffers_.reserve(num_buffers_);
  try {
    while (buffers_.size() < num_buffers_) buffers_.emplace_back(device_, buffer_bytes_);
  } catch (const Error&) {
    buffers_.clear();
    throw;
  }
  buffer_idx_ = used_bytes_ = 0;
}

GpuUploader::PinnedBuffer& GpuUploader::current() {
  PinnedBuffer& buffer = buffers_[buffer_idx_];
  if (buffer.is_in_flight) {
    buffer.fetched.synchronize();
    buffer.is_in_flight = false;
  }
  return buffer;
}

void GpuUploader::pass_on() {
  PinnedBuffer& buffer = buffers_[buffer_idx_];
  stream_.record(buffer.fetched);
  buffer.is_in_flight = true;
  buffer_idx_ = (buffer_idx_ + 1) % buffers_.size();
  used_bytes_ = 0;
}

void GpuUploader::copy(std::byte* to, const std::byte* from, size_t size_bytes) {
  if (size_bytes == 0) return;
  start();
  while (size_bytes > 0) {
    PinnedBuffer& buffer = current();
    const size_t piece_bytes = std::min(size_bytes, buffer_bytes_ - used_bytes_);
    std::byte* const pinned = buffer.memory.data() + used_bytes_;
    if (piece_bytes < kMinParallelBytes) {
      std::memcpy(pinned, from, piece_bytes);
    } else {
      pool_.run([&](int worker_idx) {
        const auto [begin, end] = pool_.part(worker_idx, static_cast<int64_t>(piece_bytes), kGrainBytes);
        if (begin >= end) return;
        const auto part_bytes = static_cast<size_t>(end - begin);
        populate(from + begin, part_bytes);
        std::memcpy(pinned + begin, from + begin, part_bytes);
      });
    }
    stream_.copy(to, pinned, piece_bytes);
    used_bytes_ += (piece_bytes + kAlignment - 1) / kAlignment * kAlignment;
    to += piece_bytes;
    from += piece_bytes;
    size_bytes -= piece_bytes;
    copied_bytes_ += piece_bytes;
    if (used_bytes_ == buffer_bytes_) pass_on();
  }
}

void GpuUploader::finish() {
  if (buffers_.empty()) return;
  stream_.synchronize();
  for (PinnedBuffer& buffer : buffers_) buffer.is_in_flight = false;
  buffer_idx_ = used_bytes_ = 0;
  elapsed_s_ = std::chrono::duration<double>(Clock::now() - *begin_).count();
}

void GpuUploader::release() {
  finish();
  buffers_.clear();
}

}  // namespace sinter
