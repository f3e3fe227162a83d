// On the fake driver, whose memory of a GPU is the host's: the plain CPU kernels can work on the copy.
#include "measure/gpu_arguments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "contract/cases.h"
#include "contract/tensor_values.h"
#include "device/fake_gpu.h"
#include "dispatch/gpu_runtime.h"
#include "ops/tensors.h"

namespace sinter::measure {
namespace {

class FakeGpuArguments : public testing::FakeGpuTest {
 protected:
  void SetUp() override {
    testing::FakeGpuTest::SetUp();
    if (!IsSkipped()) runtime_ = std::make_unique<dispatch::GpuRuntime>(*device_, pool_);
  }
  void TearDown() override {
    runtime_.reset();
    testing::FakeGpuTest::TearDown();
  }
  kernels::GpuLaunch launch() { return {runtime_->stream, runtime_->programs, runtime_->uploader}; }

  void run_oracle(const Case& one, const ops::Args& args) {
    const kernels::KernelInfo& oracle = oracle_of(ops::op_of(one.problem));
    const Buffer workspace = Buffer::host(kernels::workspace_bytes(oracle, one.problem, {}));
    kernels::LaunchContext context{.pool = pool_, .workspace = workspace.bytes()};
    oracle.launch(context, one.problem, args, {});
  }

  ThreadPool pool_{1};
  std::unique_ptr<dispatch::GpuRuntime> runtime_;
};

std::vector<std::vector<std::byte>> output_bytes(const Arguments& arguments) {
  std::vector<std::vector<std::byte>> bytes;
  for (const auto& output : arguments.outputs()) bytes.push_back(bytes_of(output.view));
  return bytes;
}

std::vector<TensorView> tensors_of(ops::Args args) {
  std::vector<TensorView> tensors;
  ops::for_each_tensor(args, [&](const TensorView& tensor) { tensors.push_back(tensor); });
  return tensors;
}

// One case of each op, and the strided ones.
std::vector<Case> few_cases() {
  std::vector<Case> cases;
  for (const Case& one : all_cases())
    if (cases.empty() || cases.back().problem.index() != one.problem.index() ||
        cases.back().scenario.strided != one.scenario.strided)
      if (one.name.find("edge_cases") != std::string::npos) cases.push_back(one);
  return cases;
}

TEST_F(FakeGpuArguments, WorkAsThoseOfTheHost) {
  kernels::GpuLaunch gpu = launch();
  std::set<ops::Op> seen;
  for (const Case& one : few_cases()) {
    SCOPED_TRACE(one.name);
    seen.insert(ops::op_of(one.problem));
    Arguments arguments(one, 7);
    const auto poisoned = output_bytes(arguments);
    run_oracle(one, arguments.args());
    const auto expected = output_bytes(arguments);
    arguments.reset_outputs();
    GpuArguments on_gpu(arguments, *device_, gpu);

    const std::vector<TensorView> there = tensors_of(on_gpu.args()), here = tensors_of(arguments.args());
    ASSERT_EQ(there.size(), here.size());
    for (size_t i = 0; i < here.size(); ++i) {
      ASSERT_EQ(there[i].is_empty(), here[i].is_empty());
      if (here[i].is_empty()) continue;
      EXPECT_NE(there[i].data(), here[i].data());
      EXPECT_EQ(bytes_of(there[i]), bytes_of(here[i]));
    }
    for (int round = 0; round < 2; ++round) {
      run_oracle(one, on_gpu.args());
      on_gpu.read_outputs();
      EXPECT_EQ(output_bytes(arguments), expected);
      EXPECT_TRUE(arguments.is_padding_intact());
      EXPECT_TRUE(on_gpu.are_inputs_intact());
      on_gpu.reset_outputs();
      on_gpu.read_outputs();
      EXPECT_EQ(output_bytes(arguments), poisoned);
    }
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(ops::kNumOps));
}

TEST_F(FakeGpuArguments, WritesWhereNoneBelongAreSeen) {
  kernels::GpuLaunch gpu = launch();
  const Case one =
      parse_cases(R"({"source": "test", "cases": [{"op": "silu_mul", "T": 3, "I": 5, "strided": true}]})",
                  "test", CaseUse::kTest)
          .at(0);
  Arguments arguments(one, 7);
  GpuArguments on_gpu(arguments, *device_, gpu);
  const auto& args = std::get<ops::SiluMulArgs>(on_gpu.args());
  on_gpu.read_outputs();
  EXPECT_TRUE(arguments.is_padding_intact());
  args.y.row<uint16_t>(1)[5] = 1;  // behind the row
  on_gpu.read_outputs();
  EXPECT_FALSE(arguments.is_padding_intact());
  on_gpu.reset_outputs();

  EXPECT_TRUE(on_gpu.are_inputs_intact());
  uint16_t& value = args.up.row<uint16_t>(2)[4];
  value ^= 1;
  EXPECT_FALSE(on_gpu.are_inputs_intact());
  value ^= 1;
  EXPECT_TRUE(on_gpu.are_inputs_intact());
  args.gate.row<uint16_t>(2)[8] = 1;  // its rows are 8 apart: behind its memory
  EXPECT_FALSE(on_gpu.are_inputs_intact());
}

// The pack of rows that read kGpuRows: the checkpoint's bytes, in the GPU's memory.
TEST_F(FakeGpuArguments, WeightsArePackedOnTheGpu) {
  kernels::GpuLaunch gpu = launch();
  const Case one =
      parse_cases(
          R"({"source": "test", "cases": [{"op": "linear", "T": 1, "N": 4, "K": 32, "format": "nvfp4"}]})",
          "test", CaseUse::kTest)
          .at(0);
  const kernels::KernelInfo* row = nullptr;
  for (const kernels::KernelInfo* kernel : kernels::registry())
    if (kernel->op == ops::Op::kLinear && kernel->layout == ops::WeightLayout::kGpuRows) row = kernel;
  if (row == nullptr) GTEST_SKIP() << "no row of linear for GPUs";
  Arguments arguments(one, 7);
  GpuArguments on_gpu(arguments, *device_, gpu);
  on_gpu.pack_for(*row, pool_);
  const ops::PackedWeights& weights = *std::get<ops::LinearArgs>(on_gpu.args()).weight;
  EXPECT_EQ(weights.layout, ops::WeightLayout::kGpuRows);
  const TensorView& data = arguments.weights().matrix().data;
  const std::span<const std::byte> packed = weights.packed.bytes(),
                                   expected(static_cast<const std::byte*>(data.data()),
                                            static_cast<size_t>(data.size_bytes()));
  EXPECT_NE(std::ranges::search(packed, expected).begin(), packed.end());
  EXPECT_THROW(on_gpu.pack_for(oracle_of(ops::Op::kLinear), pool_), Error);
}

}  // namespace
}  // namespace sinter::measure
