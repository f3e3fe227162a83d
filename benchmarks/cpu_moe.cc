// One NVFP4 expert layer of GLM-5's sizes on the CPU: hidden 6144, top 8 of 256 experts of width 256 (a share
// of tensor parallelism 8) and 2048, bf16 activations, 1 to 16 tokens, against the read bandwidth measured in
// the same minute. Over 2.6 GB of weights are rotated and routing is drawn anew for every call.
#include <cstring>
#include <numeric>
#include <vector>

#include "bandwidth_rounds.h"
#include "kernels/kernel.h"
#include "measure/random.h"
#include "numerics/bf16.h"
#include "tensor/buffer.h"

namespace sinter::benchmarks {
namespace {

using ops::WeightFormat;

constexpr int64_t kHidden = 6144, kExperts = 256, kActive = 8;

int64_t matrix_bytes(int64_t I) { return ops::stored_bytes(WeightFormat::kNvfp4, I, kHidden); }

// Layers of experts in the kernel's layout. Width 2048: half of the 256 experts are in memory, in one layer,
// and routing draws among 256 but names residents; width 256: four whole layers.
class Layers {
 public:
  Layers(const kernels::KernelInfo& kernel, ThreadPool& pool, int64_t I)
      : I_(I), num_layers_(I >= 2048 ? 1 : 4), num_residents_(I >= 2048 ? kExperts / 2 : kExperts) {
    const auto expert_bytes = static_cast<size_t>(3 * matrix_bytes(I));
    const bool packs = kernel.pack != nullptr;
    for (int64_t layer = 0; layer < num_layers_; ++layer) {
      ops::MoeWeights all;
      Buffer memory = Buffer::host(expert_bytes * static_cast<size_t>(num_residents_));
      Buffer scratch = packs ? Buffer::host(expert_bytes) : Buffer();
      for (int64_t e = 0; e < num_residents_; ++e) {
        const std::span<std::byte> place =
            memory.bytes().subspan(expert_bytes * static_cast<size_t>(e), expert_bytes);
        ops::MoeWeights one =
            fill(packs ? scratch.bytes() : place, static_cast<uint64_t>(layer * kExperts + e));
        if (packs) {
          kernels::LaunchContext context{.pool = pool, .workspace = {}};
          kernel.pack(context, one, place);
        }
        all.gate.push_back(one.gate.front());
        all.up.push_back(one.up.front());
        all.down.push_back(one.down.front());
      }
      // A packed layer keeps views of the scratch: kernels read only the numbers of the source.
      layers_.push_back({.source = std::move(all), .layout = kernel.layout, .packed = {}});
      if (packs)
        layers_.back().packed = std::move(memory);
      else
        memory_.push_back(std::move(memory));
    }
  }

  const ops::PackedWeights& layer(int64_t call) const {
    return layers_[static_cast<size_t>(call % num_layers_)];
  }
  int64_t num_residents() const { return num_residents_; }

 private:
  // Random codes; scales mostly normal, one in 128 zero or subnormal. In the order of a checkpoint: codes and
  // scales of gate, of up, of down.
  ops::MoeWeights fill(std::span<std::byte> memory, uint64_t seed) const {
    measure::Random random(seed);
    ops::MoeWeights one;
    auto* at = reinterpret_cast<uint8_t*>(memory.data());
    for (int i = 0; i < 3; ++i) {
      const int64_t N = i < 2 ? I_ : kHidden, K = i < 2 ? kHidden : I_;
      ops::Weight weight{.format = WeightFormat::kNvfp4,
                         .N = N,
                         .K = K,
                         .data = {at, DType::kF4E2M1x2, {N, K / 2}},
                         .scale = {at + N * K / 2, DType::kF8E4M3, {N, K / 16}},
                         .scale_tensor = 0x1p-9f * (1 + 0.1f * static_cast<float>(i)),
                         .input_scale = {},
                         .name = {}};
      for (int64_t byte = 0; byte < N * K / 2; byte += 8) {
        const uint64_t codes = random.next();
        std::memcpy(at + byte, &codes, 8);
      }
      uint8_t* scales = at + N * K / 2;
      for (int64_t byte = 0; byte < N * K / 16; ++byte) {
        const uint64_t bits = random.next() >> 32;
        scales[byte] = static_cast<uint8_t>(bits % 128 == 0 ? bits / 128 % 8 : 0x50 + bits / 128 % 0x2f);
      }
      at += matrix_bytes(I_);
      (i == 0 ? one.gate : i == 1 ? one.up : one.down).push_back(std::move(weight));
    }
    return one;
  }

  int64_t I_, num_layers_, num_residents_;
  std::vector<ops::PackedWeights> layers_;
  std::vector<Buffer> memory_;
};

// Eight distinct experts of 256 for each token, evenly; then those hit become distinct residents, so that the
// number of experts and the tokens of each are those of 256. Returns how many.
int64_t route(measure::Random& random, int64_t num_tokens, int64_t num_residents, int32_t* ids) {
  std::vector<int32_t> residents(static_cast<size_t>(num_residents)), experts(kExperts), seen(kExperts, -1);
  std::iota(residents.begin(), residents.end(), 0);
  for (size_t i = residents.size(); i > 1; --i)
    std::swap(residents[i - 1], residents[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  int64_t count = 0;
  for (int64_t t = 0; t < num_tokens; ++t) {
    std::iota(experts.begin(), experts.end(), 0);
    for (int64_t a = 0; a < kActive; ++a) {
      std::swap(experts[static_cast<size_t>(a)],
                experts[static_cast<size_t>(a + random.below(kExperts - a))]);
      int32_t& resident = seen[static_cast<size_t>(experts[static_cast<size_t>(a)])];
      if (resident < 0) resident = residents[static_cast<size_t>(count++)];
      ids[t * kActive + a] = resident;
    }
  }
  return count;
}

void bench(const Options& options, const kernels::KernelInfo& kernel, int64_t I) {
  ThreadPool fill_pool;
  const Layers layers(kernel, fill_pool, I);
  for (const int64_t num_threads : options.threads) {
    ThreadPool pool(static_cast<int>(num_threads));
    measure::ReadSweep sweep(pool);
    for (const int64_t T : options.tokens) {
      const ops::Problem problem =
          ops::MoeFfnProblem{.T = T, .H = kHidden, .I = I, .E = layers.num_residents(), .A = kActive};
      Buffer x = Buffer::host(static_cast<size_t>(T * kHidden * 2)),
             y = Buffer::host(static_cast<size_t>(T * kHidden * 4));
      Buffer ids = Buffer::host(static_cast<size_t>(T * kActive * 4)),
             weights = Buffer::host(static_cast<size_t>(T * kActive * 4));
      Buffer workspace = Buffer::host(kernels::workspace_bytes(kernel, problem, {}));
      measure::Random random(7);
      const TensorView xs = x.view(DType::kBF16, {T, kHidden});
      for (int64_t i = 0; i < T * kHidden; ++i)
        xs.data_as<uint16_t>()[i] = numerics::to_bf16(random.uniform(-0.04f, 0.04f));
      const TensorView scores = weights.view(DType::kF32, {T, kActive});
      for (int64_t i = 0; i < T * kActive; ++i) scores.data_as<float>()[i] = 0.125f;
      ops::MoeFfnArgs args{.x = xs,
                           .ids = ids.view(DType::kI32, {T, kActive}),
                           .weights = scores,
                           .experts = nullptr,
                           .y = y.view(DType::kF32, {T, kHidden})};
      kernels::LaunchContext context{.pool = pool, .workspace = workspace.bytes()};
      int64_t call = 0;
      double bytes_total = 0;
      const auto prepare = [&] {
        const int64_t hit = route(random, T, layers.num_residents(), args.ids.data_as<int32_t>());
        args.experts = &layers.layer(call++);
        const auto bytes = static_cast<double>(hit * 3 * matrix_bytes(I));
        bytes_total += bytes;
        return bytes;
      };
      const Result result = measure_rounds(pool, sweep, options.num_rounds, prepare,
                                           [&] { kernel.launch(context, problem, args, {}); });
      const double us = bytes_total / static_cast<double>(call) / result.kernel.median * 1e6;
      print(options, kernel.name, fmt::format("moe_ffn H=6144 I={}", I), T, pool.num_threads(), us,
            sweep.pattern(), result);
    }
  }
}

void run(int argc, char** argv) {
  Options options;
  options.widths = {256, 2048};
  options.tokens = {1, 2, 4, 8, 16};
  options.threads = {1, host_device().num_cores};
  options.parse(argc, argv);
  const DeviceInfo& device = host_device();
  if (!options.json) fmt::print("{}, {} cores\n", device.name, device.num_cores);
  for (const int64_t I : options.widths) {
    for (const kernels::KernelInfo* kernel : kernels::registry()) {
      if (kernel->op != ops::Op::kMoeFfn || kernel->is_oracle ||
          kernel->name.find(options.kernel) == std::string_view::npos)
        continue;
      const ops::Problem problem =
          ops::MoeFfnProblem{.T = 1, .H = kHidden, .I = I, .E = kExperts, .A = kActive};
      if (const kernels::Support support = kernels::supports(*kernel, problem, device); support)
        bench(options, *kernel, I);
      else if (!options.json)
        fmt::print("{}: {}\n", kernel->name, support.reason);
    }
  }
}

}  // namespace
}  // namespace sinter::benchmarks

int main(int argc, char** argv) {
  return sinter::benchmarks::report_errors([&] { sinter::benchmarks::run(argc, argv); });
}
