// The first GPU of this machine with all that launches kernels on it, for tests that only a GPU can run.
// Where there is none, or no compiler, they skip with the reason; with SINTER_REQUIRE_GPU=1 they fail.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "device/gpu_memory.h"
#include "dispatch/gpu_runtime.h"

namespace sinter::testing {

// Empty: there is one.
inline std::string machine_gpu_missing() {
  const GpuList list = list_gpus();
  if (list.gpus.empty()) return list.reason;
  if (std::string reason = list.gpus.front().unsupported_reason(); !reason.empty()) return reason;
  return jit::open_nvrtc(jit::settings_from_environment().nvrtc).reason;
}

// Of exactly the bytes asked for, full of NaN, with a guard behind.
class GpuWorkspace {
 public:
  GpuWorkspace(const GpuDevice& device, GpuStream& stream, size_t size_bytes)
      : stream_(stream), size_bytes_(size_bytes), memory_(device_buffer(device, size_bytes + kGuardBytes)) {
    poison();
  }
  void poison() { stream_.fill(memory_.data(), 0xff, memory_.size_bytes()); }
  std::span<std::byte> bytes() const { return memory_.bytes().first(size_bytes_); }
  bool is_guard_intact() {  // waits
    std::byte guard[kGuardBytes];
    stream_.copy(guard, memory_.data() + size_bytes_, kGuardBytes);
    stream_.synchronize();
    return std::ranges::all_of(guard, [](std::byte byte) { return byte == std::byte{0xff}; });
  }

 private:
  static constexpr size_t kGuardBytes = 256;
  GpuStream& stream_;
  size_t size_bytes_;
  Buffer memory_;
};

class MachineGpuTest : public ::testing::Test {
 protected:
  static void TearDownTestSuite() {
    launch_.reset();
    runtime_.reset();
    pool_.reset();
  }

  void SetUp() override {
    static const std::string missing = machine_gpu_missing();
    if (!missing.empty()) {
      const char* required = std::getenv("SINTER_REQUIRE_GPU");
      if (required != nullptr && std::string_view(required) == "1")
        FAIL() << "SINTER_REQUIRE_GPU=1, and there is no GPU to test on: " << missing;
      GTEST_SKIP() << missing;
    }
    if (runtime_ != nullptr) return;
    pool_ = std::make_unique<ThreadPool>();
    runtime_ = std::make_unique<dispatch::GpuRuntime>(GpuDevice::open(0), *pool_);
    launch_.reset(new kernels::GpuLaunch{runtime_->stream, runtime_->programs, runtime_->uploader});
    info_ = device_info(runtime_->device.info());
  }

  static ThreadPool& pool() { return *pool_; }
  static const GpuDevice& device() { return runtime_->device; }
  static const DeviceInfo& info() { return info_; }
  static GpuStream& stream() { return runtime_->stream; }
  static kernels::GpuPrograms& programs() { return runtime_->programs; }
  static kernels::GpuLaunch& gpu_launch() { return *launch_; }

 private:
  static inline std::unique_ptr<ThreadPool> pool_;
  static inline std::unique_ptr<dispatch::GpuRuntime> runtime_;
  static inline std::unique_ptr<kernels::GpuLaunch> launch_;
  static inline DeviceInfo info_;
};

}  // namespace sinter::testing
