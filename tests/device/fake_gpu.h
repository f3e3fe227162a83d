// A device of the fake driver, for tests of what is built on one. Checks at its end that nothing is left.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "device/fake_cuda.h"
#include "device/gpu_device.h"
#include "device/shared_library.h"

namespace sinter::testing {

class FakeGpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(SINTER_FAKE_CUDA)) GTEST_SKIP() << "no " << SINTER_FAKE_CUDA;
    fake_ = reinterpret_cast<FakeCudaState>(SharedLibrary(SINTER_FAKE_CUDA).find("fake_cuda_state"))();
    *fake_ = FakeCuda{};
    fake_->memory_bytes = uint64_t{64} << 20;
    driver_ = open_cuda_driver(SINTER_FAKE_CUDA).driver;
    ASSERT_TRUE(driver_);
    device_.emplace(*driver_, 0);
  }

  void TearDown() override {
    if (fake_ == nullptr) return;
    device_.reset();
    EXPECT_EQ(fake_->num_contexts, 0);
    EXPECT_EQ(fake_->num_streams, 0);
    EXPECT_EQ(fake_->num_events, 0);
    EXPECT_EQ(fake_->num_modules, 0);
    EXPECT_EQ(fake_->num_graphs, 0);
    EXPECT_EQ(fake_->num_buffers, 0);
    EXPECT_EQ(fake_->num_pins, 0);
    EXPECT_EQ(fake_->depth, 0) << "a context was left on the caller's thread";
    EXPECT_EQ(fake_->calls_without_context, 0);
  }

  FakeCuda* fake_ = nullptr;
  std::optional<CudaDriver> driver_;
  std::optional<GpuDevice> device_;
};

}  // namespace sinter::testing
