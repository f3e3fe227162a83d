// Linear layers of GLM-5's sizes on the CPU: K = 6144, 1 to 16 tokens and prefill, bf16 activations, against
// the read bandwidth measured in the same minute. Matrices over 2 GB in all take turns.
//
// Width is N. Without --kernel: the bf16 rows; "fp8", "nvfp4" or a whole name take others.
#include <cstring>
#include <vector>

#include "bandwidth_rounds.h"
#include "kernels/kernel.h"
#include "measure/random.h"
#include "numerics/bf16.h"
#include "numerics/fp8.h"
#include "tensor/buffer.h"

namespace sinter::benchmarks {
namespace {

using ops::WeightFormat;

constexpr int64_t kColumns = 6144;
constexpr int64_t kRotatedBytes = int64_t{2} << 30;

// Random values of the format, none of them NaN.
ops::Weight random_weight(WeightFormat format, int64_t N, int64_t K, std::byte* memory, uint64_t seed) {
  measure::Random random(seed);
  ops::Weight weight{
      .format = format, .N = N, .K = K, .data = {}, .scale = {}, .input_scale = {}, .name = {}};
  const auto fill = [&random](std::byte* to, int64_t size_bytes, uint64_t mask) {
    for (int64_t i = 0; i + 8 <= size_bytes; i += 8) {
      const uint64_t bits = random.next() & mask;
      std::memcpy(to + i, &bits, 8);
    }
  };
  if (format == WeightFormat::kBF16) {
    fill(memory, N * K * 2, 0xbf80bf80bf80bf80);  // exponents up to that of 1
    weight.data = {memory, DType::kBF16, {N, K}};
  } else if (format == WeightFormat::kFp8Block) {
    fill(memory, N * K, 0xbfbfbfbfbfbfbfbf);
    weight.data = {memory, DType::kF8E4M3, {N, K}};
    const int64_t tiles_n = numerics::num_fp8_tiles(N), tiles_k = numerics::num_fp8_tiles(K);
    auto* scales = reinterpret_cast<float*>(memory + N * K);
    std::fill_n(scales, tiles_n * tiles_k, 0.01f);
    weight.scale = {scales, DType::kF32, {tiles_n, tiles_k}};
  } else {
    fill(memory, N * K / 2, ~uint64_t{0});
    weight.data = {memory, DType::kF4E2M1x2, {N, K / 2}};
    fill(memory + N * K / 2, N * K / 16, 0x3f3f3f3f3f3f3f3f);
    weight.scale = {memory + N * K / 2, DType::kF8E4M3, {N, K / 16}};
  }
  return weight;
}

void bench(const Options& options, const kernels::KernelInfo& kernel, WeightFormat format, int64_t N) {
  const int64_t matrix_bytes = ops::stored_bytes(format, N, kColumns);
  const int64_t num_matrices = kRotatedBytes / matrix_bytes + 1;
  std::vector<ops::PackedWeights> matrices;
  Buffer memory;
  if (kernel.pack == nullptr) memory = Buffer::host(static_cast<size_t>(matrix_bytes * num_matrices));
  {
    ThreadPool pool;
    for (int64_t i = 0; i < num_matrices; ++i) {
      Buffer one;
      if (kernel.pack != nullptr) one = Buffer::host(static_cast<size_t>(matrix_bytes));
      std::byte* place = kernel.pack != nullptr ? one.data() : memory.data() + i * matrix_bytes;
      ops::PackedWeights weights{
          .source = random_weight(format, N, kColumns, place, static_cast<uint64_t>(i)),
          .layout = kernel.layout,
          .packed = {}};
      if (kernel.pack != nullptr) {
        // The packed form replaces the source: kernels read only the numbers of that.
        weights.packed = Buffer::host(kernel.packed_bytes(weights.source));
        kernels::LaunchContext context{.pool = pool, .workspace = {}};
        kernel.pack(context, weights.source, weights.packed.bytes());
      }
      matrices.push_back(std::move(weights));
    }
  }
  for (const int64_t num_threads : options.threads) {
    ThreadPool pool(static_cast<int>(num_threads));
    measure::ReadSweep sweep(pool);
    for (const int64_t T : options.tokens) {
      const ops::Problem problem = ops::LinearProblem{.T = T, .N = N, .K = kColumns, .format = format};
      Buffer x = Buffer::host(static_cast<size_t>(T * kColumns * 2)),
             y = Buffer::host(static_cast<size_t>(T * N * 2));
      Buffer workspace = Buffer::host(kernels::workspace_bytes(kernel, problem, {}));
      measure::Random random(7);
      auto* values = reinterpret_cast<uint16_t*>(x.data());
      for (int64_t i = 0; i < T * kColumns; ++i) values[i] = numerics::to_bf16(random.uniform(-1, 1));
      ops::LinearArgs args{.x = x.view(DType::kBF16, {T, kColumns}),
                           .weight = nullptr,
                           .bias = {},
                           .y = y.view(DType::kBF16, {T, N})};
      kernels::LaunchContext context{.pool = pool, .workspace = workspace.bytes()};
      int64_t call = 0;
      const auto prepare = [&] {
        args.weight = &matrices[static_cast<size_t>(call++ % num_matrices)];
        return static_cast<double>(matrix_bytes);
      };
      const Result result = measure_rounds(pool, sweep, options.num_rounds, prepare,
                                           [&] { kernel.launch(context, problem, args, {}); });
      const double us = static_cast<double>(matrix_bytes) / result.kernel.median * 1e6;
      print(options, kernel.name, fmt::format("linear K={} N={}", kColumns, N), T, pool.num_threads(), us,
            sweep.pattern(), result);
    }
  }
}

void run(int argc, char** argv) {
  Options options;
  options.kernel = "bf16";
  options.widths = {2048, 16384};
  options.tokens = {1, 2, 4, 8, 16, 256};
  options.threads = {1, host_device().num_cores};
  options.parse(argc, argv);
  const DeviceInfo& device = host_device();
  if (!options.json) fmt::print("{}, {} cores\n", device.name, device.num_cores);
  for (const int64_t N : options.widths) {
    for (const kernels::KernelInfo* kernel : kernels::registry()) {
      if (kernel->op != ops::Op::kLinear || kernel->is_oracle ||
          kernel->name.find(options.kernel) == std::string_view::npos)
        continue;
      for (const WeightFormat format : {WeightFormat::kBF16, WeightFormat::kFp8Block, WeightFormat::kNvfp4}) {
        const ops::Problem problem = ops::LinearProblem{.T = 1, .N = N, .K = kColumns, .format = format};
        if (const kernels::Support support = kernels::supports(*kernel, problem, device); support)
          bench(options, *kernel, format, N);
        else if (!options.json)
          fmt::print("{}, {}: {}\n", kernel->name, ops::name(format), support.reason);
      }
    }
  }
}

}  // namespace
}  // namespace sinter::benchmarks

int main(int argc, char** argv) {
  return sinter::benchmarks::report_errors([&] { sinter::benchmarks::run(argc, argv); });
}
