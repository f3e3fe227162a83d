// A context on a GPU of the fake driver: where memory comes from, what is refused, what voids a graph.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "device/fake_gpu.h"
#include "device/gpu_graph.h"
#include "dispatch/dispatch.h"
#include "dispatch/gpu_runtime.h"

namespace sinter::dispatch {
namespace {

class FakeGpuContext : public testing::FakeGpuTest {
 protected:
  ThreadPool pool_{1};
};

template <typename Action>
std::optional<Error> error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

TEST_F(FakeGpuContext, MemoryIsTheGpus) {
  Context context(*device_, pool_);
  ASSERT_TRUE(context.device().gpu);
  EXPECT_EQ(context.device().name, "Fake GPU");
  const Buffer buffer = context.allocate(1000);
  EXPECT_EQ(device_->counters().allocated_bytes, 1000);
  const std::vector<float> numbers = {1, 2, 3};
  const TensorView host(static_cast<const void*>(numbers.data()), DType::kF32, {3});
  std::vector<TensorView> uploaded;
  for (int i = 0; i < 100; ++i) uploaded.push_back(context.upload(host));
  EXPECT_LT(device_->counters().num_allocations, 10u) << "small tensors share memory";
  context.finish_uploads();
  for (const TensorView& tensor : uploaded) {
    EXPECT_NE(tensor.data(), host.data());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % 16, 0u);
    std::vector<float> read(3);
    context.read(tensor, std::as_writable_bytes(std::span(read)));
    EXPECT_EQ(read, numbers);
  }
  std::vector<std::byte> large((5 << 20) + 3, std::byte{7});
  const TensorView copy =
      context.upload(TensorView(large.data(), DType::kU8, {static_cast<int64_t>(large.size())}));
  context.finish_uploads();
  EXPECT_EQ(copy.data_as<uint8_t>()[large.size() - 1], 7);
  EXPECT_EQ(context.weight_placement().uploaded_bytes, 1200 + large.size());
}

TEST_F(FakeGpuContext, OnACpuTensorsStayWhereTheyAre) {
  Context context(host_device(), pool_);
  std::vector<float> numbers = {1, 2, 3};
  const TensorView host(numbers.data(), DType::kF32, {3});
  EXPECT_EQ(context.upload(host).data(), host.data());
  EXPECT_EQ(context.gpu(), nullptr);
  context.finish_uploads();
  context.synchronize();
}

// A graph keeps addresses: memory of steps may not move under one that is being made, and those made before
// are told by the epoch.
TEST_F(FakeGpuContext, MemoryOfStepsMovesOutsideOfCapturesOnly) {
  Context context(*device_, pool_);
  Buffer memory;
  const uint64_t epoch = context.step_memory_epoch();
  context.replace_step_memory(memory, 100);
  EXPECT_EQ(memory.size_bytes(), 100u);
  EXPECT_NE(context.step_memory_epoch(), epoch);
  const auto error = error_of([&] {
    (void)GpuGraph::capture(context.gpu()->stream, [&] { context.replace_step_memory(memory, 200); });
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::kInternal);
  EXPECT_EQ(memory.size_bytes(), 100u);
  context.replace_step_memory(memory, 200);
  EXPECT_EQ(memory.size_bytes(), 200u);
}

TEST_F(FakeGpuContext, WeightsThatDoNotFitAreRefusedBeforeTheyAreRead) {
  fake_->memory_bytes = uint64_t{2} << 30;
  Context roomy(*device_, pool_, {.context = 1000});
  roomy.expect_weights(uint64_t{1} << 30, 1024);
  EXPECT_NE(roomy.weight_placement().reason.find("room for a context of 524288 tokens"), std::string::npos)
      << roomy.weight_placement().reason;
  Context tight(*device_, pool_, {.context = 1 << 20});
  const auto longer = error_of([&] { tight.expect_weights((uint64_t{1} << 30) + 1, 1024); });
  ASSERT_TRUE(longer);
  EXPECT_EQ(longer->kind(), ErrorKind::kMemory);
  EXPECT_EQ(longer->detail().mend, "--context 524287 fits");
  const auto larger = error_of([&] { roomy.expect_weights(uint64_t{3} << 30, 1024); });
  ASSERT_TRUE(larger);
  EXPECT_NE(larger->detail().expected.find("3.22 GB for weights"), std::string::npos) << larger->what();
  EXPECT_NE(larger->detail().found.find("2.15 GB free"), std::string::npos) << larger->what();
}

TEST_F(FakeGpuContext, WhatOnlyACpuCanIsRefused) {
  for (const Options& options : {Options{.reference = true}, Options{.pack_weights = false}}) {
    const auto error = error_of([&] { Context context(*device_, pool_, options); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), ErrorKind::kUsage);
    EXPECT_EQ(error->detail().mend, "--device cpu");
  }
}

// A description of a GPU answers questions and computes nothing.
TEST_F(FakeGpuContext, ADescriptionDoesNotCompute) {
  Context context(device_info(*find_arch("sm_90a")), pool_);
  const ops::Problem problem = ops::EmbeddingProblem{.T = 1, .V = 2, .H = 4};
  for (const Verdict& verdict : context.explain(problem))
    EXPECT_FALSE(verdict.chosen && verdict.kernel->processor == kernels::Processor::kCpu);
  std::vector<int32_t> ids = {0};
  std::vector<uint16_t> table(8);
  std::vector<float> y(4);
  EXPECT_THROW(
      context.run(problem, ops::EmbeddingArgs{.ids = TensorView(ids.data(), DType::kI32, {1}),
                                              .weight = TensorView(table.data(), DType::kBF16, {2, 4}),
                                              .y = TensorView(y.data(), DType::kF32, {1, 4})}),
      Error);
}

TEST(ContextOptions, ABackendForcesAllItsRows) {
  ThreadPool pool(1);
  const Context context(host_device(), pool, {.forced = {{ops::Op::kEmbedding, "cpu"}}});
  const auto verdicts = context.explain(ops::EmbeddingProblem{.T = 1, .V = 2, .H = 4});
  const auto chosen = std::ranges::find_if(verdicts, &Verdict::chosen);
  ASSERT_NE(chosen, verdicts.end());
  EXPECT_EQ(chosen->reason, "chosen: forced");
  EXPECT_TRUE(error_of([&] { Context(host_device(), pool, {.forced = {{ops::Op::kEmbedding, "cp"}}}); }));
}

}  // namespace
}  // namespace sinter::dispatch
