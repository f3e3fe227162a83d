#include "device/device_info.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/environment.h"
#include "base/error.h"

namespace sinter {
namespace {

TEST(DeviceInfo, AgreesWithTheKernelsOwnList) {
  if (!environment().cpu_isa.empty()) GTEST_SKIP() << "SINTER_CPU_ISA hides features";
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("flags")) {
  }
  const auto has = [&](const std::string& flag) {
    return (line + " ").find(" " + flag + " ") != std::string::npos;
  };
  const DeviceInfo& device = host_device();
  EXPECT_EQ(device.cpu.avx2, has("avx2") && has("fma") && has("f16c"));
  EXPECT_EQ(device.cpu.avx512, has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl"));
  EXPECT_EQ(device.cpu.avx512_vbmi, has("avx512vbmi"));
  EXPECT_EQ(device.cpu.avx512_bf16, has("avx512_bf16"));
  EXPECT_EQ(device.cpu.avx512_vnni, has("avx512_vnni"));
  EXPECT_FALSE(device.name.empty());
  EXPECT_GE(device.num_cores, 1);
  EXPECT_GT(device.memory_bytes, uint64_t{100} << 20);
}

TEST(DeviceInfo, LimitHidesWhatIsAbove) {
  const CpuFeatures all{
      .avx2 = true, .avx512 = true, .avx512_vbmi = true, .avx512_bf16 = true, .avx512_vnni = true};
  EXPECT_TRUE(limit_isa(all, "").avx512_bf16);
  EXPECT_TRUE(limit_isa(all, "avx512").avx512);
  EXPECT_FALSE(limit_isa(all, "avx512").avx512_bf16);
  EXPECT_TRUE(limit_isa(all, "avx2").avx2);
  EXPECT_FALSE(limit_isa(all, "avx2").avx512);
  EXPECT_FALSE(limit_isa(all, "scalar").avx2);
  EXPECT_FALSE(limit_isa({}, "avx512").avx512) << "adds nothing";
  EXPECT_THROW(limit_isa(all, "avx3"), Error);
}

}  // namespace
}  // namespace sinter
