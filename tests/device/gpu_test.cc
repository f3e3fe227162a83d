// What only a GPU can show. Skips, with the reason, where there is none.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "device/gpu_graph.h"
#include "device/gpu_memory.h"
#include "device/nvml.h"

namespace sinter {
namespace {

// add(uint32_t* data, uint32_t count, uint32_t value). The driver compiles it, so that no compiler is needed
// here.
std::string add_kernel(const Arch& arch) {
  return fmt::format(
      R"(.version 7.8
.target {}
.address_size 64
.visible .entry add(.param .u64 data, .param .u32 count, .param .u32 value) {{
  .reg .pred p; .reg .b32 i, n, v, x, block, threads, thread; .reg .b64 address, offset;
  {}
  ld.param.u64 address, [data]; ld.param.u32 n, [count]; ld.param.u32 v, [value];
  mov.u32 block, %ctaid.x; mov.u32 threads, %ntid.x; mov.u32 thread, %tid.x;
  mad.lo.u32 i, block, threads, thread;
  setp.ge.u32 p, i, n; @p bra done;
  mul.wide.u32 offset, i, 4; add.u64 address, address, offset;
  ld.global.u32 x, [address]; add.u32 x, x, v; st.global.u32 [address], x;
done:
  ret;
}}
)",
      arch.has_dependent_launch ? "sm_90" : "sm_80",
      arch.has_dependent_launch ? "griddepcontrol.launch_dependents; griddepcontrol.wait;" : "");
}

class GpuTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kCount = 100'000;
  static constexpr size_t kBytes = kCount * sizeof(uint32_t);

  void SetUp() override {
    const GpuList list = list_gpus();
    if (list.gpus.empty()) GTEST_SKIP() << list.reason;
    if (const std::string reason = list.gpus[0].unsupported_reason(); !reason.empty()) GTEST_SKIP() << reason;
    device_.emplace(GpuDevice::open(0));
    stream_.emplace(*device_);
  }

  GpuModule add_module() const {
    const std::string text = add_kernel(*device_->info().arch);
    return GpuModule(*device_, std::as_bytes(std::span(text.c_str(), text.size() + 1)), "add.ptx");
  }

  std::vector<uint32_t> read(const Buffer& buffer) {
    std::vector<uint32_t> values(buffer.size_bytes() / sizeof(uint32_t));
    stream_->copy(values.data(), buffer.data(), buffer.size_bytes());
    stream_->synchronize();
    return values;
  }

  static LaunchShape shape(bool is_dependent = false) {
    return {.grid = {(kCount + 255) / 256}, .block = {256}, .is_dependent = is_dependent};
  }

  std::optional<GpuDevice> device_;
  std::optional<GpuStream> stream_;
};

TEST_F(GpuTest, LimitsAreThoseOfTheTable) {
  for (const GpuInfo& gpu : list_gpus().gpus) {
    if (gpu.arch == nullptr) continue;
    EXPECT_EQ(gpu.block_shared_bytes, gpu.arch->block_shared_bytes) << gpu.name;
    EXPECT_EQ(gpu.sm_shared_bytes, gpu.arch->sm_shared_bytes) << gpu.name;
    EXPECT_EQ(gpu.sm_registers, gpu.arch->sm_registers) << gpu.name;
    EXPECT_EQ(gpu.sm_threads, gpu.arch->sm_threads) << gpu.name;
    EXPECT_GT(gpu.num_sms, 0);
    EXPECT_GT(gpu.memory_bytes, int64_t{1} << 30);
    EXPECT_EQ(gpu.uuid.size(), 40u) << gpu.uuid;
    EXPECT_GE(gpu.cuda_version, kMinCudaVersion);
  }
}

TEST_F(GpuTest, AnIndexBeyondTheLastIsRefused) {
  EXPECT_THROW(GpuDevice::open(-1), Error);
  EXPECT_THROW(GpuDevice::open(1000), Error);
}

TEST_F(GpuTest, BytesGoThereAndBack) {
  const int64_t free_before = device_->memory_use().free_bytes;
  const Buffer buffer = device_buffer(*device_, size_t{256} << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 256, 0u);
  EXPECT_LE(device_->memory_use().free_bytes, free_before - (int64_t{256} << 20) + (int64_t{4} << 20));
  const Buffer sent = pinned_buffer(*device_, 4096), received = pinned_buffer(*device_, 4096);
  for (size_t i = 0; i < 4096; ++i) sent.data()[i] = static_cast<std::byte>(i * 7);
  stream_->copy(buffer.data() + 12345, sent.data(), 4096);
  stream_->fill(buffer.data() + 12345 + 100, 0xab, 5);
  stream_->copy(received.data(), buffer.data() + 12345, 4096);
  stream_->synchronize();
  std::memset(sent.data() + 100, 0xab, 5);
  EXPECT_EQ(std::memcmp(sent.data(), received.data(), 4096), 0);
}

TEST_F(GpuTest, MoreMemoryThanThereIsIsRefusedAndNothingBreaks) {
  try {
    device_buffer(*device_, static_cast<size_t>(2 * device_->info().memory_bytes));
    FAIL() << "twice the memory";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMemory) << error.what();
  }
  EXPECT_NE(device_buffer(*device_, 1024).data(), nullptr);
}

TEST_F(GpuTest, PinnedMemoryOfOthersCopies) {
  std::vector<uint32_t> values(kCount, 5);
  const HostPin pin(*device_, std::as_bytes(std::span(values)), HostPin::Access::kReadWrite);
  const Buffer buffer = device_buffer(*device_, kBytes);
  stream_->copy(buffer.data(), values.data(), kBytes);
  EXPECT_EQ(read(buffer), values);
}

TEST_F(GpuTest, EventsMeasureAndOrder) {
  const Buffer buffer = device_buffer(*device_, size_t{512} << 20);
  GpuEvent begin(*device_), end(*device_);
  stream_->record(begin);
  stream_->fill(buffer.data(), 1, buffer.size_bytes());
  stream_->record(end);
  GpuStream other(*device_, GpuStream::Priority::kHigh);
  other.wait_for(end);
  uint8_t last = 0;
  other.copy(&last, buffer.data() + buffer.size_bytes() - 1, 1);
  other.synchronize();
  EXPECT_EQ(last, 1);
  EXPECT_TRUE(end.is_reached());
  EXPECT_TRUE(stream_->is_idle());
  const double us = end.us_since(begin);
  EXPECT_GT(us, 20) << "512 MiB faster than 25 TB/s";
  EXPECT_LT(us, 1e6);
}

TEST_F(GpuTest, AKernelRuns) {
  const GpuModule module = add_module();
  const GpuFunction add = module.function("add");
  EXPECT_EQ(add.parameter_bytes().size(), 3u);
  EXPECT_GT(add.num_registers(), 0);
  EXPECT_EQ(add.local_bytes(), 0);
  EXPECT_GE(add.blocks_per_sm(256, 0), 1);
  EXPECT_EQ(add.blocks_per_sm(256, add.max_dynamic_shared_bytes()), 1);
  EXPECT_THROW(module.function("subtract"), Error);
  const Buffer buffer = device_buffer(*device_, kBytes);
  stream_->fill(buffer.data(), 0, kBytes);
  stream_->launch(add, shape(), buffer.data(), kCount, 42u);
  EXPECT_THROW(stream_->launch(add, shape(), buffer.data(), kCount), Error);
  EXPECT_EQ(read(buffer), std::vector<uint32_t>(kCount, 42));
}

TEST_F(GpuTest, ALaunchMayHaveAllSharedMemory) {
  const GpuModule module = add_module();
  const GpuFunction add = module.function("add");
  const Buffer buffer = device_buffer(*device_, kBytes);
  LaunchShape all = shape();
  all.shared_bytes = static_cast<uint32_t>(add.max_dynamic_shared_bytes());
  stream_->launch(add, all, buffer.data(), 0u, 0u);
  EXPECT_NO_THROW(stream_->synchronize());
}

TEST_F(GpuTest, ADecodeStepIsAGraphOfDependentLaunches) {
  constexpr int kLayers = 20;
  const GpuModule module = add_module();
  const GpuFunction add = module.function("add");
  const Buffer buffer = device_buffer(*device_, kBytes);
  stream_->fill(buffer.data(), 0, kBytes);
  const GpuGraph graph = GpuGraph::capture(*stream_, [&] {
    for (int i = 0; i < kLayers; ++i) stream_->launch(add, shape(true), buffer.data(), kCount, 1u);
  });
  EXPECT_EQ(graph.nodes().num_kernels, kLayers);
  EXPECT_EQ(graph.nodes().num_allocations + graph.nodes().num_host_calls + graph.nodes().num_copies, 0);
  graph.upload(*stream_);
  const GpuCounters before = device_->counters();
  for (int step = 0; step < 5; ++step) graph.launch(*stream_);
  const GpuCounters after = device_->counters();
  EXPECT_EQ(after.num_graph_launches, before.num_graph_launches + 5);
  EXPECT_EQ(after.num_allocations, before.num_allocations);
  EXPECT_EQ(after.num_synchronizations, before.num_synchronizations);
  EXPECT_EQ(read(buffer), std::vector<uint32_t>(kCount, 5 * kLayers));
}

TEST_F(GpuTest, EventsInsideAGraphAreReachedAtEachLaunch) {
  const Buffer buffer = device_buffer(*device_, size_t{64} << 20);
  GpuEvent begin(*device_), end(*device_);
  const GpuGraph graph = GpuGraph::capture(*stream_, [&] {
    stream_->record_in_graph(begin);
    stream_->fill(buffer.data(), 1, buffer.size_bytes());
    stream_->record_in_graph(end);
  });
  EXPECT_EQ(graph.nodes().num_events, 2);
  for (int i = 0; i < 2; ++i) {
    graph.launch(*stream_);
    stream_->synchronize();
    EXPECT_GT(end.us_since(begin), 1);
  }
}

TEST_F(GpuTest, MemoryInACaptureIsRefusedAndTheStreamSurvives) {
  EXPECT_THROW(GpuGraph::capture(*stream_, [&] { device_buffer(*device_, 1024); }), Error);
  EXPECT_FALSE(stream_->is_capturing());
  const Buffer buffer = device_buffer(*device_, 4);
  stream_->fill(buffer.data(), 0xff, 4);
  EXPECT_EQ(read(buffer).at(0), 0xffffffffu);
}

TEST_F(GpuTest, WhatIsNoCubinIsRefused) {
  const std::string text = "neither PTX nor a cubin";
  try {
    GpuModule(*device_, std::as_bytes(std::span(text.c_str(), text.size() + 1)), "text");
    FAIL() << "loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported) << error.what();
  }
}

TEST_F(GpuTest, AnyThreadMayUseADevice) {
  const GpuModule module = add_module();
  const GpuFunction add = module.function("add");
  const Buffer buffer = device_buffer(*device_, kBytes);
  std::thread([&] {
    stream_->fill(buffer.data(), 0, kBytes);
    stream_->launch(add, shape(), buffer.data(), kCount, 3u);
    stream_->synchronize();
  }).join();
  EXPECT_EQ(read(buffer), std::vector<uint32_t>(kCount, 3));
}

TEST_F(GpuTest, PeersCopyAndTellTheirLinks) {
  const size_t num_gpus = list_gpus().gpus.size();
  if (num_gpus < 2) GTEST_SKIP() << "one GPU";
  const GpuDevice peer = GpuDevice::open(1);
  const PeerLink link = peer_link(device_->driver(), 0, 1);
  if (link.has_access) {
    device_->enable_peer(peer);
    device_->enable_peer(peer);
  }
  const Buffer here = device_buffer(*device_, kBytes), there = device_buffer(peer, kBytes);
  GpuStream stream_there(peer);
  stream_there.fill(there.data(), 1, kBytes);
  stream_there.synchronize();
  stream_->copy(here.data(), there.data(), kBytes);
  EXPECT_EQ(read(here), std::vector<uint32_t>(kCount, 0x01010101));
}

TEST_F(GpuTest, NvmlFindsTheSameGpu) {
  const Nvml& nvml = Nvml::instance();
  if (!nvml.is_available()) GTEST_SKIP() << nvml.reason();
  EXPECT_NE(nvml.driver_version(), "");
  const GpuTelemetry reading = nvml.read(device_->info().pci_bus_id);
  ASSERT_TRUE(reading.sm_clock_mhz || reading.power_w || reading.temperature_c) << device_->info().pci_bus_id;
  if (reading.power_w && reading.power_limit_w) {
    EXPECT_LT(*reading.power_w, 1.5 * *reading.power_limit_w);
  }
  if (reading.sm_clock_mhz && reading.sm_clock_max_mhz) {
    EXPECT_LE(*reading.sm_clock_mhz, *reading.sm_clock_max_mhz);
  }
  if (reading.pcie_lanes && reading.pcie_lanes_max) {
    EXPECT_LE(*reading.pcie_lanes, *reading.pcie_lanes_max);
  }
  EXPECT_FALSE(nvml.read("ffff:ff:1f.0").power_w) << "a GPU that is not there";
}

}  // namespace
}  // namespace sinter
