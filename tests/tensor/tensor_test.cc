#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "tensor/buffer.h"
#include "tensor/tensor_view.h"

namespace sinter {
namespace {

TEST(Shape, ChecksRankSignAndProduct) {
  EXPECT_EQ((Shape{2048, 384}).to_string(), "[2048, 384]");
  EXPECT_EQ(Shape().num_elements(), 1);
  EXPECT_EQ((Shape{3, 0, 5}).num_elements(), 0);
  EXPECT_THROW((Shape{1, -1}), Error);
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1}), Error);
  EXPECT_THROW((Shape{int64_t{1} << 32, int64_t{1} << 31}), Error);
  EXPECT_FALSE((Shape{2, 3}) == (Shape{2, 3, 1}));
}

class View : public testing::Test {
 protected:
  View() { std::iota(numbers_, numbers_ + 24, 0); }
  int32_t numbers_[24];
  const TensorView view_{numbers_, DType::kI32, {2, 3, 4}};
};

TEST_F(View, SlicesAndRows) {
  const TensorView slice = view_.slice(2, 1, 3);
  EXPECT_EQ(slice.shape(), (Shape{2, 3, 2}));
  EXPECT_FALSE(slice.is_contiguous());
  EXPECT_EQ(slice.row<int32_t>(1)[0], 13);
  EXPECT_EQ(view_.slice(1, 2, 3).row<int32_t>(0)[3], 11);
  EXPECT_TRUE(view_.slice(0, 1, 2).is_contiguous());
  EXPECT_TRUE(view_.slice(1, 1, 1).slice(0, 0, 1).is_contiguous()) << "no elements";
  EXPECT_THROW(view_.slice(1, 2, 4), Error);
  EXPECT_THROW(view_.slice(3, 0, 1), Error);
  EXPECT_THROW(slice.size_bytes(), Error);
  EXPECT_THROW(view_.row<int64_t>(0), Error) << "elements of another size";
}

TEST_F(View, ReshapesWhatStridesAllow) {
  EXPECT_EQ(view_.reshape({6, 4}).row<int32_t>(5)[1], 21);
  const TensorView columns = view_.reshape({6, 4}).slice(1, 0, 2);
  const TensorView split = columns.reshape({6, 2, 1});
  EXPECT_EQ(split.stride(0), 4);
  EXPECT_EQ(split.slice(1, 1, 2).row<int32_t>(3)[0], 13);
  EXPECT_EQ(columns.reshape({2, 3, 2}).row<int32_t>(1)[0], 12);
  EXPECT_THROW(columns.reshape({12}), Error) << "rows do not touch";
  EXPECT_THROW(columns.reshape({4, 3}), Error);
  EXPECT_THROW(view_.reshape({5, 5}), Error);
}

TEST_F(View, CheckNamesTensorExpectedAndFound) {
  try {
    check_shape(view_, {2, 3, 5}, "x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "tensor 'x': expected shape [2, 3, 5], found [2, 3, 4]");
  }
  EXPECT_THROW(check_shape({}, {2}, "x"), Error);
  EXPECT_THROW(check_dtype(view_, DType::kF32, "x"), Error);
}

TEST(Buffer, IsZeroAlignedAndReleasedOnce) {
  int num_released = 0;
  std::byte memory[4];
  {
    Buffer first(memory, 4, [&](std::byte*) { ++num_released; });
    Buffer second = std::move(first);
    Buffer third;
    third = std::move(second);
    EXPECT_EQ(third.data(), memory);
    EXPECT_EQ(num_released, 0);
  }
  EXPECT_EQ(num_released, 1);

  for (size_t size_bytes : {size_t{1}, size_t{100}, (size_t{2} << 20) + 1}) {
    const Buffer buffer = Buffer::host(size_bytes);
    const auto address = reinterpret_cast<uintptr_t>(buffer.data());
    EXPECT_EQ(address % (size_bytes < 4096 ? 64 : size_t{2} << 20), 0u);
    EXPECT_EQ(buffer.bytes().back(), std::byte{0});
  }
  EXPECT_EQ(Buffer::host(0).data(), nullptr);
  const Buffer buffer = Buffer::host(64);
  EXPECT_THROW(buffer.view(DType::kF32, {17}), Error);
  EXPECT_THROW(buffer.view(DType::kF32, {1}, 61), Error);
  EXPECT_NO_THROW(buffer.view(DType::kF32, {1}, 60));
}

TEST(Buffer, TooMuchMemoryIsAnError) {
  for (size_t size_bytes : {SIZE_MAX, SIZE_MAX / 2, size_t{1} << 60}) {
    try {
      Buffer::host(size_bytes);
      ADD_FAILURE() << size_bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kMemory);
    }
  }
}

}  // namespace
}  // namespace sinter
