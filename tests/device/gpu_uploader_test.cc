// The uploader over the fake driver: what arrives, from how many pinned buffers, and what is given back.
#include "device/gpu_uploader.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "device/fake_gpu.h"
#include "device/gpu_memory.h"

namespace sinter {
namespace {

class Uploader : public testing::FakeGpuTest {
 protected:
  static std::vector<std::byte> bytes_of(size_t size_bytes, unsigned seed) {
    std::vector<std::byte> bytes(size_bytes);
    for (size_t i = 0; i < size_bytes; ++i) bytes[i] = static_cast<std::byte>((i * 2654435761u + seed) >> 13);
    return bytes;
  }

  ThreadPool pool_{2};
};

// Sizes around those of a buffer, of the parallel copy and of the alignment, one after the other into one
// place: a piece that overwrites another in a buffer, or is cut wrongly, changes bytes.
TEST_F(Uploader, EveryByteArrivesWhateverTheSizes) {
  constexpr size_t kBuffer = size_t{1} << 20;
  for (const int num_buffers : {1, 3}) {
    GpuUploader uploader(*device_, pool_, kBuffer, num_buffers);
    const size_t sizes[] = {1,
                            63,
                            64,
                            65,
                            0,
                            kBuffer,
                            kBuffer - 1,
                            3 * kBuffer + 17,
                            4096,
                            kBuffer / 2 + 5,
                            kBuffer / 2 - 5,
                            2 * kBuffer};
    size_t total_bytes = 0;
    for (const size_t size : sizes) total_bytes += size;
    const Buffer target = device_buffer(*device_, total_bytes);
    std::vector<std::byte> expected;
    size_t offset = 0;
    for (const size_t size : sizes) {
      std::vector<std::byte> piece = bytes_of(size, static_cast<unsigned>(offset));
      uploader.copy(target.data() + offset, piece.data(), size);
      expected.insert(expected.end(), piece.begin(), piece.end());
      std::ranges::fill(piece, std::byte{0xee});  // free again on return
      offset += size;
    }
    uploader.finish();
    EXPECT_EQ(uploader.copied_bytes(), total_bytes);
    EXPECT_GT(uploader.elapsed_s(), 0);
    EXPECT_TRUE(std::ranges::equal(target.bytes(), expected)) << num_buffers << " buffers";
  }
}

TEST_F(Uploader, SmallPiecesShareABufferAndWaitForNothing) {
  GpuUploader uploader(*device_, pool_, size_t{1} << 20, 2);
  const Buffer target = device_buffer(*device_, 64 << 10);
  const std::vector<std::byte> source = bytes_of(64 << 10, 1);
  uploader.copy(target.data(), source.data(), 1024);
  const GpuCounters before = device_->counters();
  for (size_t i = 1; i < 64; ++i) uploader.copy(target.data() + 1024 * i, source.data() + 1024 * i, 1024);
  EXPECT_EQ(device_->counters().num_allocations, before.num_allocations);
  EXPECT_EQ(device_->counters().num_synchronizations, before.num_synchronizations);
  uploader.finish();
  EXPECT_EQ(device_->counters().num_synchronizations, before.num_synchronizations + 1);
  EXPECT_TRUE(std::ranges::equal(target.bytes(), source));
}

TEST_F(Uploader, PinnedMemoryIsTakenAtTheFirstCopyAndGivenBack) {
  GpuUploader uploader(*device_, pool_, size_t{1} << 20, 4);
  EXPECT_EQ(fake_->num_buffers, 0);
  uploader.finish();
  uploader.release();
  const Buffer target = device_buffer(*device_, 16);
  const std::vector<std::byte> source = bytes_of(16, 3);
  uploader.copy(target.data(), source.data(), 16);
  EXPECT_EQ(fake_->num_buffers, 5);
  uploader.release();
  EXPECT_EQ(fake_->num_buffers, 1);
  EXPECT_TRUE(std::ranges::equal(target.bytes(), source));
  uploader.copy(target.data(), source.data() + 8, 8);
  uploader.finish();
  EXPECT_EQ(target.bytes()[0], source[8]);
  EXPECT_EQ(uploader.copied_bytes(), 24u);
}

}  // namespace
}  // namespace sinter
