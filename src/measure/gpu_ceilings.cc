#include "measure/gpu_ceilings.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "device/gpu_graph.h"
#include "device/gpu_memory.h"
#include "measure/statistics.h"

namespace fs = std::filesystem;

namespace sinter::measure {
namespace {

constexpr uint32_t kThreads = 512;  // as in ceilings.cu
constexpr int kNumWarmups = 2, kNumRounds = 9;
constexpr size_t kMostBytes = size_t{4} << 30, kLeastBytes = size_t{256} << 20;
constexpr int64_t kLineBytes = 16;

// Median of the rounds on the GPU's clock.
double median_us(GpuStream& stream, const std::function<void()>& work) {
  GpuEvent begin(stream.device()), end(stream.device());
  std::vector<double> times_us;
  for (int round = 0; round < kNumWarmups + kNumRounds; ++round) {
    stream.record(begin);
    work();
    stream.record(end);
    end.synchronize();
    if (round >= kNumWarmups) times_us.push_back(end.us_since(begin));
  }
  return summarize(times_us).median;
}

class Measurement {
 public:
  Measurement(const GpuDevice& device, const jit::Compiler& compiler)
      : device_(device), compiler_(compiler), stream_(device) {
    const GpuMemoryUse use = device.memory_use();
    const size_t size_bytes = std::min(static_cast<size_t>(use.free_bytes) / 4, kMostBytes) / 4096 * 4096;
    if (size_bytes < kLeastBytes)
      throw Error(ErrorKind::kMemory,
                  {.where = device.label(),
                   .expected = fmt::format("{} MB free to measure the bandwidth with", 4 * kLeastBytes >> 20),
                   .found = fmt::format("{} MB", use.free_bytes >> 20),
                   .mend = "stop other programs on this GPU"});
    memory_ = device_buffer(device, size_bytes);
    sink_ = device_buffer(device, 256);
    fill();
  }

  GpuCeilings run() {
    GpuCeilings result;
    for (const int num_lines_in_flight : {4, 8})
      for (const uint32_t blocks_per_sm : {1u, 2u, 4u})
        measure_memory(num_lines_in_flight, blocks_per_sm, result);
    measure_mma(result);
    measure_launches(result);
    return result;
  }

 private:
  GpuModule load(int num_lines_in_flight) const {
    const jit::Compiled compiled =
        compiler_.compile({.path = "cuda/ceilings.cu",
                           .arch = device_.info().arch,
                           .defines = {{"SINTER_UNROLLED", std::to_string(num_lines_in_flight)}},
                           .options = {}});
    return GpuModule(device_, compiled.cubin, compiled.name);
  }
  LaunchShape shape(uint32_t blocks_per_sm) const {
    return {.grid = {static_cast<uint32_t>(device_.info().num_sms) * blocks_per_sm}, .block = {kThreads}};
  }

  // Not zeros: reading them can be faster than reading data.
  void fill() {
    std::vector<uint64_t> words((size_t{32} << 20) / sizeof(uint64_t));
    uint64_t state = 0x9e3779b97f4a7c15;
    for (uint64_t& word : words) word = state = state * 6364136223846793005 + 1442695040888963407;
    const size_t piece_bytes = words.size() * sizeof(uint64_t);
    for (size_t at = 0; at < memory_.size_bytes(); at += piece_bytes)
      stream_.copy(memory_.data() + at, words.data(), std::min(piece_bytes, memory_.size_bytes() - at));
    stream_.synchronize();
  }

  void measure_memory(int num_lines_in_flight, uint32_t blocks_per_sm, GpuCeilings& best) {
    const GpuModule module = load(num_lines_in_flight);
    const GpuFunction read = module.function("ceiling_read"), copy = module.function("ceiling_copy");
    const auto num_bytes = static_cast<double>(memory_.size_bytes());
    const long long num_lines = static_cast<long long>(memory_.size_bytes()) / kLineBytes;
    std::byte* const memory = memory_.data();
    std::byte* const sink = sink_.data();
    const double read_us = median_us(
        stream_, [&] { stream_.launch(read, shape(blocks_per_sm), memory, num_lines, 0x12345678u, sink); });
    const double copy_us = median_us(stream_, [&] {
      std::byte* const target = memory + num_lines / 2 * kLineBytes;
      stream_.launch(copy, shape(blocks_per_sm), memory, target, num_lines / 2);
    });
    if (const double gb_per_s = num_bytes / read_us / 1e3; gb_per_s > best.read_gb_per_s) {
      best.read_gb_per_s = gb_per_s;
      best.read_shape = fmt::format("{} lines x {} blocks", num_lines_in_flight, blocks_per_sm);
    }
    best.copy_gb_per_s = std::max(best.copy_gb_per_s, num_bytes / copy_us / 1e3);
  }

  void measure_mma(GpuCeilings& result) {
    const GpuModule module = load(8);
    const GpuFunction mma = module.function("ceiling_mma");
    constexpr int kNumSteps = 20000, kNumChains = 8;
    std::byte* const sink = sink_.data();
    const LaunchShape all = shape(2);
    const double us = median_us(stream_, [&] { stream_.launch(mma, all, kNumSteps, 1u, sink); });
    const double num_warps = static_cast<double>(all.grid.count()) * kThreads / 32;
    result.mma_bf16_tflops = num_warps * kNumSteps * kNumChains * 2 * 16 * 8 * 16 / us / 1e6;
  }

  void measure_launches(GpuCeilings& result) {
    const GpuModule module = load(8);
    const GpuFunction nothing = module.function("ceiling_nothing");
    constexpr int kNumLaunches = 1000;
    const GpuGraph graph = GpuGraph::capture(stream_, [&] {
      for (int i = 0; i < kNumLaunches; ++i) stream_.launch(nothing, shape(1));
    });
    result.launch_gap_us = median_us(stream_, [&] { graph.launch(stream_); }) / kNumLaunches;
  }

  const GpuDevice device_;
  const jit::Compiler& compiler_;
  GpuStream stream_;
  Buffer memory_, sink_;
};

std::optional<GpuCeilings> read_file(const fs::path& path) {
  try {
    const Json json = parse_json_file(path.string());
    return GpuCeilings{.read_gb_per_s = json.at("read_gb_per_s").get<double>(),
                       .copy_gb_per_s = json.at("copy_gb_per_s").get<double>(),
                       .mma_bf16_tflops = json.at("mma_bf16_tflops").get<double>(),
                       .launch_gap_us = json.at("launch_gap_us").get<double>(),
                       .read_shape = json.at("read_shape").get<std::string>()};
  } catch (const Error&) {
    return std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

// Whole or not at all: another process may write the same.
void write_file(const fs::path& path, const std::string& device, const GpuCeilings& ceilings) {
  const Json json = {{"device", device},
                     {"read_gb_per_s", ceilings.read_gb_per_s},
                     {"copy_gb_per_s", ceilings.copy_gb_per_s},
                     {"mma_bf16_tflops", ceilings.mma_bf16_tflops},
                     {"launch_gap_us", ceilings.launch_gap_us},
                     {"read_shape", ceilings.read_shape}};
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const fs::path unfinished = path.string() + fmt::format(".{}", ::getpid());
  if (std::ofstream(unfinished) << json.dump(2) << '\n')
    fs::rename(unfinished, path, error);
  else
    fs::remove(unfinished, error);
}

}  // namespace

GpuCeilings measure_gpu_ceilings(const GpuDevice& device, const jit::Compiler& compiler) {
  return Measurement(device, compiler).run();
}

GpuCeilings gpu_ceilings(const GpuDevice& device, const jit::Compiler& compiler, const fs::path& folder) {
  const fs::path path =
      folder / "ceilings" / fmt::format("{}-cuda{}.json", device.info().uuid, device.info().cuda_version);
  if (!folder.empty())
    if (const auto known = read_file(path)) return *known;
  GpuCeilings ceilings = measure_gpu_ceilings(device, compiler);
  if (!folder.empty()) write_file(path, device.info().name, ceilings);
  return ceilings;
}

}  // namespace sinter::measure
