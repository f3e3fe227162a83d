#include "workbench/device_choice.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "device/known_devices.h"

namespace sinter::workbench {
namespace {

TEST(DeviceChoice, NamesOfDevices) {
  EXPECT_EQ(parse_device("auto").kind, DeviceChoice::Kind::kAuto);
  EXPECT_EQ(parse_device("cpu").kind, DeviceChoice::Kind::kCpu);
  EXPECT_EQ(parse_device("gpu").gpu_idx, 0);
  EXPECT_EQ(parse_device("gpu:12").gpu_idx, 12);
  EXPECT_EQ(parse_device("gpu:12").kind, DeviceChoice::Kind::kGpu);
  for (const char* wrong : {"", "gpu:", "gpu:-1", "gpu:1x", "gpu: 1", "GPU", "h200", "gpu:99999999999"}) {
    try {
      parse_device(wrong);
      ADD_FAILURE() << "'" << wrong << "' was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage) << wrong;
    }
  }
}

TEST(DeviceChoice, TheCpuIsNoGpu) { EXPECT_FALSE(open_device({DeviceChoice::Kind::kCpu})); }

// Devices that are not here can be asked about; every known one has its architecture.
TEST(DeviceChoice, TargetsNeedNotBePresent) {
  EXPECT_EQ(find_target("sm_120a").name, "sm_120a");
  EXPECT_EQ(find_target("h200").name, "sm_90a");
  EXPECT_EQ(find_device_info("h200").gpu->arch->name, "sm_90a");
  EXPECT_FALSE(find_device_info("cpu").gpu);
  for (const KnownDevice& device : known_devices()) EXPECT_NO_THROW(find_target(device.name)) << device.name;
  EXPECT_THROW(find_target("sm_42"), Error);
  EXPECT_THROW(find_device_info("sm_42"), Error);
  EXPECT_THROW(find_device_info("gpu:999"), Error);
}

}  // namespace
}  // namespace sinter::workbench
