#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "dispatch/dispatch.h"
#include "numerics/bf16.h"

namespace sinter::dispatch {
namespace {

// A bf16 matrix of its own, w[n, k] = n - k / 8.
struct Matrix {
  std::vector<uint16_t> bits;
  ops::Weight weight;

  Matrix(int64_t N, int64_t K) : bits(static_cast<size_t>(N * K)) {
    for (int64_t n = 0; n < N; ++n)
      for (int64_t k = 0; k < K; ++k)
        bits[static_cast<size_t>(n * K + k)] =
            numerics::to_bf16(static_cast<float>(n) - static_cast<float>(k) / 8);
    weight.format = ops::WeightFormat::kBF16;
    weight.N = N;
    weight.K = K;
    weight.data = TensorView(bits.data(), DType::kBF16, {N, K});
    weight.name = "w";
  }
};

ops::LinearProblem linear(int64_t T, DType x = DType::kF32) {
  return {.T = T, .N = 32, .K = 64, .format = ops::WeightFormat::kBF16, .x = x, .y = DType::kF32};
}

class ContextTest : public testing::Test {
 protected:
  std::string chosen(const Context& context, const ops::Problem& problem,
                     std::optional<ops::WeightLayout> layout = std::nullopt) {
    for (const Verdict& verdict : context.explain(problem, layout))
      if (verdict.chosen) return std::string(verdict.kernel->name);
    return "";
  }

  DeviceInfo device_ = host_device();
  ThreadPool pool_{1};
};

TEST_F(ContextTest, ReferenceTakesOracles) {
  const Context context(device_, pool_, {.reference = true});
  EXPECT_EQ(chosen(context, linear(1)), "cpu.linear_plain");
  for (const Verdict& verdict : context.explain(linear(1)))
    EXPECT_FALSE(verdict.reason.empty()) << verdict.kernel->name;
}

TEST_F(ContextTest, ARowIsAlwaysFoundOnACpuWithoutVectors) {
  device_.cpu = {};
  const Context context(device_, pool_);
  for (const DType x : {DType::kF32, DType::kBF16})
    EXPECT_EQ(chosen(context, linear(1, x)), "cpu.linear_plain");
}

TEST_F(ContextTest, WithoutPackingOnlyWeightsInPlace) {
  const Context context(device_, pool_, {.pack_weights = false});
  for (const Verdict& verdict : context.explain(linear(1, DType::kBF16)))
    EXPECT_TRUE(!verdict.chosen || verdict.kernel->layout == ops::WeightLayout::kInPlace)
        << verdict.kernel->name;
}

TEST_F(ContextTest, ForcingTakesTheRowOrSaysWhyNot) {
  const Context plain(device_, pool_, {.forced = {{ops::Op::kLinear, "cpu.linear_plain"}}});
  EXPECT_EQ(chosen(plain, linear(1, DType::kBF16)), "cpu.linear_plain");

  // Any row that a CPU without vector instructions cannot run.
  device_.cpu = {};
  const kernels::KernelInfo* impossible = nullptr;
  for (const kernels::KernelInfo* kernel : kernels::registry())
    if (kernel->op == ops::Op::kLinear && !kernels::supports(*kernel, linear(1, DType::kBF16), device_))
      impossible = kernel;
  if (impossible == nullptr) GTEST_SKIP() << "every linear runs everywhere";
  Context context(device_, pool_, {.forced = {{ops::Op::kLinear, std::string(impossible->name)}}});
  Matrix matrix(32, 64);
  try {
    context.prepare(linear(1, DType::kBF16), matrix.weight);
    FAIL() << "a kernel that cannot run was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    const std::string message = error.what();
    EXPECT_NE(message.find(impossible->name), std::string::npos) << message;
    EXPECT_NE(message.find(kernels::supports(*impossible, linear(1, DType::kBF16), device_).reason),
              std::string::npos)
        << message;
  }
}

TEST_F(ContextTest, ForcingNonsenseIsAUsageError) {
  const auto kind_of = [&](Options options) {
    try {
      Context context(device_, pool_, std::move(options));
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::kInternal;
  };
  EXPECT_EQ(kind_of({.forced = {{ops::Op::kLinear, "cpu.no_such_kernel"}}}), ErrorKind::kUsage);
  EXPECT_EQ(kind_of({.forced = {{ops::Op::kLinear, "cpu.router_plain"}}}), ErrorKind::kUsage);
}

// The layout chosen for one token serves every number of tokens, in whatever layout that was.
TEST_F(ContextTest, PreparedWeightsServeEveryNumberOfTokens) {
  Matrix matrix(32, 64);
  for (const Options& options : {Options{}, Options{.pack_weights = false}, Options{.reference = true}}) {
    Context context(device_, pool_, options);
    const DType x_type = options.reference ? DType::kF32 : DType::kBF16;
    const ops::PackedWeights weights = context.prepare(linear(1, x_type), matrix.weight);
    for (const int64_t T : {1, 3, 40, 2, 1}) {
      std::vector<float> x(static_cast<size_t>(T * 64)), y(static_cast<size_t>(T * 32), NAN);
      std::vector<uint16_t> x_bits(x.size());
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3;
      std::ranges::transform(x, x_bits.begin(), numerics::to_bf16);
      const TensorView x_view = options.reference ? TensorView(x.data(), DType::kF32, {T, 64})
                                                  : TensorView(x_bits.data(), DType::kBF16, {T, 64});
      context.run(
          linear(T, x_type),
          ops::LinearArgs{
              .x = x_view, .weight = &weights, .bias = {}, .y = TensorView(y.data(), DType::kF32, {T, 32})});
      for (int64_t t = 0; t < T; ++t)
        for (int64_t n = 0; n < 32; ++n) {
          double expected = 0;
          for (int64_t k = 0; k < 64; ++k)
            expected += static_cast<double>(x[static_cast<size_t>(t * 64 + k)]) *
                        numerics::from_bf16(matrix.bits[static_cast<size_t>(n * 64 + k)]);
          ASSERT_NEAR(y[static_cast<size_t>(t * 32 + n)], expected, 1e-2)
              << T << " tokens, " << t << ", " << n;
        }
    }
  }
}

TEST_F(ContextTest, ArgumentsAreCheckedAtTheDoor) {
  Matrix matrix(32, 64);
  Context context(device_, pool_, {.reference = true});
  const ops::PackedWeights weights = context.prepare(linear(1), matrix.weight);
  std::vector<float> x(64), y(31);
  EXPECT_THROW(context.run(linear(1), ops::LinearArgs{.x = TensorView(x.data(), DType::kF32, {1, 64}),
                                                      .weight = &weights,
                                                      .bias = {},
                                                      .y = TensorView(y.data(), DType::kF32, {1, 31})}),
               Error);
}

// More problems than are remembered: each still gets its kernel.
TEST_F(ContextTest, ManyProblemsDoNotPileUp) {
  Context context(device_, pool_, {.reference = true});
  const std::vector<float> table(2 * 4, 1.0f);
  for (int64_t T = 1; T <= 600; ++T) {
    std::vector<int32_t> ids(static_cast<size_t>(T), 1);
    std::vector<float> y(static_cast<size_t>(T * 4), 0.0f);
    context.run(
        ops::EmbeddingProblem{.T = T, .V = 2, .H = 4, .weight = DType::kF32},
        ops::EmbeddingArgs{.ids = TensorView(ids.data(), DType::kI32, {T}),
                           .weight = TensorView(static_cast<const void*>(table.data()), DType::kF32, {2, 4}),
                           .y = TensorView(y.data(), DType::kF32, {T, 4})});
    ASSERT_EQ(std::accumulate(y.begin(), y.end(), 0.0f), static_cast<float>(T * 4));
  }
}

// Weights that cannot fit are used where they lie; those that can are packed.
TEST_F(ContextTest, MemoryDecidesAboutPacking) {
  if (available_memory_bytes() == 0) GTEST_SKIP() << "the system does not tell";
  bool has_packed_row = false;
  for (const kernels::KernelInfo* kernel : kernels::registry())
    has_packed_row |= kernel->op == ops::Op::kLinear && kernel->packed_bytes != nullptr &&
                      kernels::supports(*kernel, linear(1, DType::kBF16), device_);
  Matrix matrix(32, 64);
  Context roomy(device_, pool_), tight(device_, pool_);
  roomy.expect_weights(1 << 20);
  tight.expect_weights(available_memory_bytes());
  EXPECT_EQ(roomy.prepare(linear(1, DType::kBF16), matrix.weight).layout != ops::WeightLayout::kInPlace,
            has_packed_row);
  EXPECT_EQ(tight.prepare(linear(1, DType::kBF16), matrix.weight).layout, ops::WeightLayout::kInPlace);
}

}  // namespace
}  // namespace sinter::dispatch
