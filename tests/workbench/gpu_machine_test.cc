#include "workbench/gpu_machine.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sinter::workbench {
namespace {

GpuInfo healthy_gpu() {
  GpuInfo gpu;
  gpu.name = "NVIDIA H200";
  gpu.major = 9;
  gpu.arch = arch_of(9, 0);
  gpu.num_sms = 132;
  gpu.memory_bytes = int64_t{141} * 1000 * 1000 * 1000;
  return gpu;
}

GpuTelemetry healthy_telemetry() {
  GpuTelemetry telemetry;
  telemetry.power_limit_w = telemetry.power_limit_default_w = 700;
  telemetry.sm_clock_mhz = telemetry.sm_clock_max_mhz = 1980;
  telemetry.pcie_generation = telemetry.pcie_generation_max = 5;
  telemetry.pcie_lanes = telemetry.pcie_lanes_max = 16;
  telemetry.has_persistence = true;
  telemetry.clock_limits = 1;  // idle
  return telemetry;
}

Level worst(const std::vector<Finding>& findings) {
  return std::ranges::max_element(findings, {}, &Finding::level)->level;
}

TEST(FakeGpuMachine, AHealthyGpuIsFine) {
  const auto findings = examine_gpu(healthy_gpu(), healthy_telemetry());
  EXPECT_GE(findings.size(), 4u);
  EXPECT_EQ(worst(findings), Level::kOk);
}

// Each thing that costs speed is said with its mend.
TEST(FakeGpuMachine, EachTroubleIsToldWithItsMend) {
  const auto trouble = [](auto change) {
    GpuTelemetry telemetry = healthy_telemetry();
    GpuInfo gpu = healthy_gpu();
    change(gpu, telemetry);
    std::vector<Finding> findings = examine_gpu(gpu, telemetry);
    std::erase_if(findings, [](const Finding& finding) { return finding.level <= Level::kOk; });
    EXPECT_EQ(findings.size(), 1u);
    if (findings.empty()) return Finding{Level::kOk, "", "", ""};
    EXPECT_NE(findings.front().mend, "");
    return findings.front();
  };
  EXPECT_EQ(trouble([](auto&, auto& t) { t.power_limit_w = 400; }).mend, "nvidia-smi -pl 700");
  EXPECT_EQ(trouble([](auto&, auto& t) { t.clock_limits = 0x20; }).subject, "GPU 0 clocks");
  EXPECT_EQ(trouble([](auto&, auto& t) { t.pcie_lanes = 4; }).subject, "GPU 0 PCIe");
  EXPECT_EQ(trouble([](auto&, auto& t) { t.has_persistence = false; }).mend, "nvidia-smi -pm 1");
  EXPECT_EQ(trouble([](auto&, auto& t) { t.uncorrected_ecc_errors = 2; }).level, Level::kFailure);
  EXPECT_EQ(trouble([](auto& g, auto&) { g.major = 7, g.arch = nullptr; }).level, Level::kFailure);
}

TEST(FakeGpuMachine, PeersThatDoNotReachEachOtherAreNamed) {
  EXPECT_EQ(examine_peers({{true, true}, {true, true}}).level, Level::kOk);
  const Finding finding = examine_peers({{true, false, true}, {true, true, true}, {true, false, true}});
  EXPECT_EQ(finding.level, Level::kWarning);
  EXPECT_EQ(finding.text, "no access from 0 to 1, 2 to 1");
}

TEST(FakeGpuMachine, AMissingCompilerMattersWhereThereIsADriver) {
  const jit::NvrtcFound missing{nullptr, "not found", "pip install it"};
  EXPECT_EQ(examine_nvrtc(missing, 0).level, Level::kNote);
  EXPECT_EQ(examine_nvrtc(missing, 12080).level, Level::kWarning);
  EXPECT_EQ(examine_nvrtc(missing, 12080).mend, "pip install it");
}

}  // namespace
}  // namespace sinter::workbench
