#include "measure/gpu_ceilings.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

namespace sinter::measure {
namespace {

TEST(GpuCeilings, AreUnderTheDataSheetAndKept) {
  const GpuList list = list_gpus();
  if (list.gpus.empty()) GTEST_SKIP() << list.reason;
  if (const std::string reason = list.gpus[0].unsupported_reason(); !reason.empty()) GTEST_SKIP() << reason;
  const GpuDevice device = GpuDevice::open(0);
  const jit::Compiler compiler;
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "sinter-gpu-ceilings";
  std::filesystem::remove_all(folder);

  const GpuCeilings measured = gpu_ceilings(device, compiler, folder);
  std::printf("%s: read %.0f GB/s (%s), copy %.0f GB/s, mma.sync bf16 %.0f TFLOP/s, launch gap %.2f us\n",
              device.label().c_str(), measured.read_gb_per_s, measured.read_shape.c_str(),
              measured.copy_gb_per_s, measured.mma_bf16_tflops, measured.launch_gap_us);
  // Two transfers a clock on every bus of theirs.
  const GpuInfo& gpu = device.info();
  const double bus_gb_per_s = 2.0 * gpu.memory_clock_mhz * gpu.memory_bus_bits / 8 / 1e3;
  EXPECT_GT(measured.read_gb_per_s, 0.5 * bus_gb_per_s);
  EXPECT_LT(measured.read_gb_per_s, 1.02 * bus_gb_per_s);
  EXPECT_GT(measured.copy_gb_per_s, 0.4 * bus_gb_per_s);
  EXPECT_LT(measured.copy_gb_per_s, 1.02 * bus_gb_per_s);
  // At most 4096 operations of a multiprocessor in a clock (8192 through wgmma and its kind).
  const double most_tflops = 8192.0 * gpu.num_sms * gpu.sm_clock_mhz / 1e6;
  EXPECT_GT(measured.mma_bf16_tflops, 0.02 * most_tflops);
  EXPECT_LT(measured.mma_bf16_tflops, most_tflops);
  EXPECT_GT(measured.launch_gap_us, 0.1);
  EXPECT_LT(measured.launch_gap_us, 20);

  EXPECT_EQ(gpu_ceilings(device, compiler, folder), measured) << "not kept";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sinter::measure
