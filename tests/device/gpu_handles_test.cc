// Handles over the fake driver: what they own, in which context they call, what they ask for.
#include <gtest/gtest.h>

#include "base/error.h"
#include "device/fake_gpu.h"
#include "device/gpu_graph.h"
#include "device/gpu_memory.h"

namespace sinter {
namespace {

using testing::FakeCuda;

constexpr std::byte kCubin[] = {std::byte{'c'}, std::byte{'u'}, std::byte{'b'}, std::byte{'i'},
                                std::byte{'n'}};

class Handles : public testing::FakeGpuTest {
 protected:
  void SetUp() override {
    FakeGpuTest::SetUp();
    if (fake_ != nullptr) fake_->memory_bytes = uint64_t{1} << 20;
  }
};

TEST_F(Handles, BuffersKeepTheContextAlive) {
  Buffer buffer = device_buffer(*device_, 1000);
  const Buffer pinned = pinned_buffer(*device_, 64);
  EXPECT_EQ(device_->counters().num_allocations, 2u);
  EXPECT_EQ(device_->counters().allocated_bytes, 1000);
  EXPECT_EQ(device_->memory_use().free_bytes, (1 << 20) - 1000);
  device_.reset();
  EXPECT_EQ(fake_->num_contexts, 1);
  buffer = {};
  EXPECT_EQ(fake_->used_bytes, 0u);
}

TEST_F(Handles, NoBytesAreNoAllocation) {
  EXPECT_EQ(device_buffer(*device_, 0).data(), nullptr);
  EXPECT_EQ(pinned_buffer(*device_, 0).data(), nullptr);
  EXPECT_EQ(device_->counters().num_allocations, 0u);
}

TEST_F(Handles, OutOfMemorySaysWhatWasAskedForAndWhatIsFree) {
  const Buffer taken = device_buffer(*device_, 512 << 10);
  try {
    device_buffer(*device_, size_t{3} << 30);
    FAIL() << "more than there is";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMemory);
    EXPECT_EQ(error.detail().where, "GPU 0 (Fake GPU)");
    EXPECT_EQ(error.detail().expected, "3.00 GiB of memory");
    EXPECT_EQ(error.detail().found, "0.00 GiB free of 0.00 GiB");
  }
}

TEST_F(Handles, ReadOnlyMemoryIsPinnedOnlyWhereTheGpuCan) {
  const std::byte memory[64] = {};
  EXPECT_THROW(HostPin(*device_, memory, HostPin::Access::kReadOnly), Error);
  const HostPin pin(*device_, memory, HostPin::Access::kReadWrite);
  EXPECT_EQ(fake_->num_pins, 1);
}

TEST_F(Handles, CopiesAndFillsArriveAndAreCounted) {
  GpuStream stream(*device_);
  const Buffer buffer = device_buffer(*device_, 16);
  const char sent[16] = "fifteen letters";
  char received[16] = {};
  stream.copy(buffer.data(), sent, 16);
  stream.fill(buffer.data(), 'F', 1);
  stream.copy(received, buffer.data(), 16);
  stream.copy(received, buffer.data(), 0);
  stream.synchronize();
  EXPECT_STREQ(received, "Fifteen letters");
  EXPECT_EQ(device_->counters().num_copies, 3u);
  EXPECT_EQ(device_->counters().num_synchronizations, 1u);
}

TEST_F(Handles, MovingAHandleMovesTheDutyToDestroyIt) {
  GpuStream a(*device_);
  GpuStream b = std::move(a);
  EXPECT_EQ(fake_->num_streams, 1);
  a = GpuStream(*device_, GpuStream::Priority::kHigh);
  b = std::move(a);
  GpuEvent event(*device_);
  GpuEvent other = std::move(event);
  event = GpuEvent(*device_, GpuEvent::Kind::kUntimed);
  other.synchronize();
  EXPECT_TRUE(other.is_reached());
  EXPECT_DOUBLE_EQ(other.us_since(event), 250);
}

TEST_F(Handles, AFunctionKnowsItsLimits) {
  const GpuModule module(*device_, kCubin, "test.cubin");
  const GpuFunction function = module.function("kernel");
  EXPECT_EQ(function.num_registers(), 96);
  EXPECT_EQ(function.max_threads(), 512);
  EXPECT_EQ(function.static_shared_bytes(), 1024);
  EXPECT_EQ(function.max_dynamic_shared_bytes(), 232448 - 1024);
  EXPECT_EQ(function.parameter_bytes().size(), 2u);
  try {
    module.function("absent");
    FAIL() << "found what is not there";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("absent in test.cubin"), std::string::npos) << error.what();
  }
  const std::byte wrong[5] = {};
  EXPECT_THROW(GpuModule(*device_, wrong, "wrong.cubin"), Error);
}

TEST_F(Handles, ALaunchPassesParametersShapeAndAttributes) {
  const GpuModule module(*device_, kCubin, "test.cubin");
  const GpuFunction function = module.function("kernel");
  GpuStream stream(*device_);
  float value = 0;
  float* const address = &value;
  stream.launch(function, {.grid = {7, 2}, .block = {128}, .shared_bytes = 200 << 10}, address, int32_t{-3});
  stream.launch(
      function,
      {.grid = {4}, .block = {32}, .cluster = {2, 1, 1}, .is_cooperative = true, .is_dependent = true},
      address, uint32_t{3});
  ASSERT_EQ(fake_->launches.size(), 2u);
  const testing::FakeLaunch& first = fake_->launches[0];
  EXPECT_EQ(first.first, reinterpret_cast<uint64_t>(address));
  EXPECT_EQ(static_cast<int32_t>(first.second), -3);
  EXPECT_EQ(first.config.grid_x, 7u);
  EXPECT_EQ(first.config.grid_y, 2u);
  EXPECT_EQ(first.config.grid_z, 1u);
  EXPECT_EQ(first.config.block_x, 128u);
  EXPECT_EQ(first.config.shared_bytes, 200u << 10);
  EXPECT_EQ(first.config.stream, stream.handle());
  EXPECT_TRUE(first.attributes.empty());
  const auto& attributes = fake_->launches[1].attributes;
  ASSERT_EQ(attributes.size(), 3u);
  EXPECT_EQ(attributes[0].id, cuda_abi::kCooperative);
  EXPECT_EQ(attributes[0].value.flag, 1);
  EXPECT_EQ(attributes[1].id, cuda_abi::kClusterDimension);
  EXPECT_EQ(attributes[1].value.cluster.x, 2u);
  EXPECT_EQ(attributes[2].id, cuda_abi::kProgrammaticStreamSerialization);
  EXPECT_EQ(attributes[2].value.flag, 1);
  EXPECT_EQ(device_->counters().num_kernel_launches, 2u);
  EXPECT_EQ(device_->counters().num_allocations, 0u);
}

TEST_F(Handles, ADependentLaunchIsOrdinaryWhereThereIsNone) {
  fake_->major = 8;
  const GpuDevice ampere(*driver_, 0);
  const GpuModule module(ampere, kCubin, "test.cubin");
  GpuStream stream(ampere);
  stream.launch(module.function("kernel"), {.is_dependent = true}, uint64_t{0}, 0);
  EXPECT_TRUE(fake_->launches.at(0).attributes.empty());
}

TEST_F(Handles, ALaunchThatCannotWorkIsRefusedBeforeTheDriver) {
  const GpuModule module(*device_, kCubin, "test.cubin");
  const GpuFunction function = module.function("kernel");
  GpuStream stream(*device_);
  const auto refusal = [&](const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      return error.detail().expected;
    }
    return std::string();
  };
  EXPECT_EQ(refusal([&] { stream.launch(function, {}, 0, 0); }), "2 parameters of bytes [8 4]");
  EXPECT_EQ(refusal([&] { stream.launch(function, {}, uint64_t{0}); }), "2 parameters of bytes [8 4]");
  EXPECT_EQ(refusal([&] { stream.launch(function, {.block = {513}}, uint64_t{0}, 0); }),
            "at most 512 threads a block");
  EXPECT_EQ(refusal([&] { stream.launch(function, {.shared_bytes = 231425}, uint64_t{0}, 0); }),
            "at most 231424 bytes of shared memory");
  EXPECT_TRUE(fake_->launches.empty());

  fake_->launch_result = cuda_abi::kIllegalAddress;
  try {
    stream.launch(function, {}, uint64_t{0}, 0);
    FAIL() << "the driver refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.detail().where, "GPU 0 (Fake GPU): kernel: cuLaunchKernelEx");
    EXPECT_NE(error.detail().mend, "");
  }
}

TEST_F(Handles, AGraphHoldsWhatWasRecorded) {
  const GpuModule module(*device_, kCubin, "test.cubin");
  const GpuFunction function = module.function("kernel");
  GpuStream stream(*device_);
  GpuEvent event(*device_);
  const Buffer buffer = device_buffer(*device_, 16);
  const GpuCounters before = device_->counters();
  GpuGraph graph = GpuGraph::capture(stream, [&] {
    stream.record_in_graph(event);
    stream.fill(buffer.data(), 0, 16);
    stream.launch(function, {}, buffer.data(), 0);
    stream.launch(function, {.is_dependent = true}, buffer.data(), 1);
  });
  EXPECT_FALSE(stream.is_capturing());
  EXPECT_EQ(graph.nodes().num_kernels, 2);
  EXPECT_EQ(graph.nodes().num_copies, 1);
  EXPECT_EQ(graph.nodes().num_events, 1);
  EXPECT_EQ(graph.nodes().num_allocations, 0);
  graph.upload(stream);
  graph.launch(stream);
  const GpuGraph moved = std::move(graph);
  moved.launch(stream);
  EXPECT_TRUE(graph.is_empty());
  EXPECT_EQ(device_->counters().num_graph_launches, 2u);
  EXPECT_EQ(device_->counters().num_allocations, before.num_allocations);
  EXPECT_EQ(device_->counters().num_synchronizations, before.num_synchronizations);
}

TEST_F(Handles, ACaptureThatThrowsLeavesTheStreamUsable) {
  GpuStream stream(*device_);
  EXPECT_THROW(GpuGraph::capture(stream, [] { throw std::runtime_error("in the middle"); }),
               std::runtime_error);
  EXPECT_FALSE(stream.is_capturing());
  EXPECT_THROW(GpuGraph::capture(stream, [&] { device_buffer(*device_, 1); }), Error)
      << "no memory in a step";
  EXPECT_FALSE(stream.is_capturing());
  EXPECT_THROW(GpuGraph().launch(stream), Error);
}

TEST_F(Handles, PeersAreEnabledOnceOrMoreOften) {
  const GpuDevice peer(*driver_, 1);
  EXPECT_NO_THROW(device_->enable_peer(peer));
  fake_->peer_result = cuda_abi::kPeerAccessAlreadyEnabled;
  EXPECT_NO_THROW(device_->enable_peer(peer));
  fake_->peer_result = cuda_abi::kNotSupported;
  EXPECT_THROW(device_->enable_peer(peer), Error);
  const PeerLink link = peer_link(*driver_, 0, 1);
  EXPECT_TRUE(link.has_access);
  EXPECT_TRUE(link.has_atomics);
  EXPECT_EQ(link.performance_rank, cuda_abi::kPerformanceRank)
      << "the fake answers with the number asked for";
  EXPECT_FALSE(peer_link(*driver_, 1, 1).has_access);
}

}  // namespace
}  // namespace sinter
