#include "device/cuda_driver.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "device/device_info.h"
#include "device/fake_cuda.h"
#include "device/gpu_device.h"
#include "device/nvml.h"
#include "device/shared_library.h"

namespace sinter {
namespace {

using testing::FakeCuda;
using testing::FakeCudaState;

constexpr const char* kNoSuchLibrary = "libsinter_no_such_driver.so.1";

TEST(SharedLibrary, TellsMissingFromBroken) {
  const SharedLibrary missing(kNoSuchLibrary);
  EXPECT_FALSE(missing.is_open());
  EXPECT_TRUE(missing.is_missing());
  EXPECT_EQ(missing.find("cuInit"), nullptr);
  const SharedLibrary broken(SINTER_SOURCE_DIR "/README.md");
  EXPECT_FALSE(broken.is_open());
  EXPECT_FALSE(broken.is_missing());
  EXPECT_NE(broken.reason(), "");
}

TEST(CudaDriver, SaysWhyThereIsNone) {
  EXPECT_EQ(open_cuda_driver(kNoSuchLibrary).reason,
            "libsinter_no_such_driver.so.1 not found: no NVIDIA driver is installed");
  EXPECT_FALSE(open_cuda_driver(kNoSuchLibrary).driver);
  EXPECT_NE(open_cuda_driver(SINTER_SOURCE_DIR "/README.md").reason.find("cannot be loaded"),
            std::string::npos);
  EXPECT_NE(open_cuda_driver("libm.so.6").reason.find("is no CUDA driver"), std::string::npos);
}

TEST(CudaDriver, VersionsAreWrittenAsPeopleDo) {
  EXPECT_EQ(cuda_version_text(12040), "12.4");
  EXPECT_EQ(cuda_version_text(13000), "13.0");
  EXPECT_EQ(cuda_version_text(kMinCudaVersion), "12.4");
}

// On a machine without a driver; on one with a GPU the Gpu... suites ask the same questions.
TEST(CudaDriver, AMachineWithoutOneHasNoGpusAndSaysSo) {
  if (find_cuda_driver().driver) GTEST_SKIP() << "there is a driver";
  const GpuList list = list_gpus();
  EXPECT_TRUE(list.gpus.empty());
  EXPECT_EQ(list.reason, find_cuda_driver().reason);
  EXPECT_NE(list.reason, "");
  try {
    GpuDevice::open(0);
    FAIL() << "opened a GPU";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_NE(std::string(error.what()).find(list.reason), std::string::npos) << error.what();
  }
}

TEST(Nvml, WithoutALibraryEveryReadingIsEmpty) {
  const Nvml nvml(kNoSuchLibrary);
  EXPECT_FALSE(nvml.is_available());
  EXPECT_EQ(nvml.reason(), "libsinter_no_such_driver.so.1 not found: no NVIDIA driver is installed");
  EXPECT_EQ(nvml.driver_version(), "");
  const GpuTelemetry reading = nvml.read("0000:17:00.0");
  EXPECT_FALSE(reading.power_w || reading.sm_clock_mhz || reading.clock_limits || reading.pcie_lanes ||
               reading.has_persistence || reading.has_ecc || reading.temperature_c ||
               reading.memory_free_bytes);
  EXPECT_EQ(Nvml("libm.so.6").reason(), "libm.so.6 is too old");
}

TEST(Nvml, ClockLimitsAreNamedAndOnlyBrakesCount) {
  EXPECT_TRUE(clock_limit_names(0).empty());
  EXPECT_EQ(clock_limit_names(0x24), (std::vector<std::string_view>{"power limit", "temperature (driver)"}));
  EXPECT_TRUE(is_throttled(0x4));
  EXPECT_TRUE(is_throttled(0x8));
  EXPECT_FALSE(is_throttled(0x1)) << "idle";
  EXPECT_FALSE(is_throttled(0x2)) << "set on purpose";
}

class FakeDriver : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(SINTER_FAKE_CUDA)) GTEST_SKIP() << "no " << SINTER_FAKE_CUDA;
    const auto state =
        reinterpret_cast<FakeCudaState>(SharedLibrary(SINTER_FAKE_CUDA).find("fake_cuda_state"));
    ASSERT_NE(state, nullptr);
    fake_ = state();
    *fake_ = FakeCuda{};
  }
  std::string reason() const { return open_cuda_driver(SINTER_FAKE_CUDA).reason; }

  FakeCuda* fake_ = nullptr;
};

TEST_F(FakeDriver, OpensWithEveryFunction) {
  const CudaDriverSearch search = open_cuda_driver(SINTER_FAKE_CUDA);
  ASSERT_TRUE(search.driver) << search.reason;
  EXPECT_EQ(search.reason, "");
  EXPECT_EQ(search.driver->version, 13000);
#define SINTER_IS_FOUND(name, version, parameters) EXPECT_NE(search.driver->name, nullptr) << #name;
  SINTER_CUDA_FUNCTIONS(SINTER_IS_FOUND)
}

TEST_F(FakeDriver, AnOldOneIsRefusedWithTheVersionToInstall) {
  fake_->version = 12020;
  EXPECT_EQ(reason(),
            "the NVIDIA driver is for CUDA 12.2, sinter needs 12.4: install driver 550.54.14 or newer");
  fake_->version = kMinCudaVersion;
  EXPECT_EQ(reason(), "");
}

TEST_F(FakeDriver, AMissingFunctionIsNamed) {
  fake_->missing = "cuGraphLaunch";
  EXPECT_EQ(reason(), "the NVIDIA driver has no cuGraphLaunch, though CUDA 13.0 has");
}

TEST_F(FakeDriver, FailureToStartIsExplained) {
  fake_->init_result = cuda_abi::kNoDevice;
  EXPECT_EQ(reason(), "the NVIDIA driver sees no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES");
  fake_->init_result = cuda_abi::kSystemDriverMismatch;
  EXPECT_EQ(reason(), "the NVIDIA driver does not start: CUDA_ERROR_X (803): the driver's text");
}

TEST_F(FakeDriver, ErrorsHaveTheCallThePlaceAndTheDriversText) {
  const CudaDriver driver = *open_cuda_driver(SINTER_FAKE_CUDA).driver;
  EXPECT_NO_THROW(driver.check(cuda_abi::kSuccess, "cuMemAlloc", "GPU 0"));
  const auto kind_of = [&](cuda_abi::CUresult result) {
    try {
      driver.check(result, "cuMemAlloc", "GPU 0");
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("GPU 0: cuMemAlloc: CUDA_ERROR_")) << error.what();
      return error.kind();
    }
    ADD_FAILURE() << "no error for " << result;
    return ErrorKind::kUsage;
  };
  EXPECT_EQ(kind_of(cuda_abi::kOutOfMemory), ErrorKind::kMemory);
  EXPECT_EQ(kind_of(cuda_abi::kNoBinaryForGpu), ErrorKind::kUnsupported);
  EXPECT_EQ(kind_of(cuda_abi::kIllegalAddress), ErrorKind::kInternal);
  EXPECT_EQ(kind_of(cuda_abi::kInvalidValue), ErrorKind::kInternal);
}

TEST_F(FakeDriver, InfoHasWhatTheDriverTellsAndTheRowOfTheTable) {
  const CudaDriver driver = *open_cuda_driver(SINTER_FAKE_CUDA).driver;
  const GpuInfo info = read_gpu(driver, 1);
  EXPECT_EQ(info.device_idx, 1);
  EXPECT_EQ(info.name, "Fake GPU");
  EXPECT_EQ(info.arch, find_arch("sm_90a"));
  EXPECT_EQ(info.uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
  EXPECT_EQ(info.pci_bus_id, "0000:17:00.0");
  EXPECT_EQ(info.num_sms, 132);
  EXPECT_EQ(info.block_shared_bytes, info.arch->block_shared_bytes);
  EXPECT_EQ(info.sm_clock_mhz, 1980);
  EXPECT_EQ(info.numa_node, -1) << "not told";
  EXPECT_EQ(info.unsupported_reason(), "");

  const DeviceInfo device = device_info(info);
  EXPECT_EQ(device.name, "Fake GPU");
  EXPECT_EQ(device.l2_bytes, uint64_t{60} << 20);
  ASSERT_TRUE(device.gpu);
  EXPECT_FALSE(host_device().gpu);
  EXPECT_EQ(device_info(*find_arch("sm_120a")).gpu->block_shared_bytes, 101376);
}

TEST_F(FakeDriver, AGpuOutsideTheTableIsRefusedWithTheReason) {
  const CudaDriver driver = *open_cuda_driver(SINTER_FAKE_CUDA).driver;
  const auto refusal = [&](int major, int minor) {
    fake_->major = major;
    fake_->minor = minor;
    try {
      GpuDevice(driver, 0);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
      return error.detail().found;
    }
    return std::string();
  };
  EXPECT_EQ(refusal(7, 5), "compute capability 7.5 is older than 8.0");
  EXPECT_EQ(refusal(14, 0), "compute capability 14.0 is not one that this version of sinter has kernels for");
  EXPECT_EQ(refusal(12, 1), "");
  EXPECT_EQ(fake_->num_contexts, 0);
}

}  // namespace
}  // namespace sinter
