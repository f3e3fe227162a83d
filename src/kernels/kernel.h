// What a kernel is: one row of the registry. Rows always exist, also those that this machine cannot run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "device/device_info.h"
#include "ops/op.h"

namespace sinter::kernels {

// Yes, or the reason why not, in words for a person: "needs AVX-512 BF16, this CPU has none".
struct Support {
  bool ok = true;
  std::string reason;

  static Support yes() { return {}; }
  static Support no(std::string why) { return {false, std::move(why)}; }
  explicit operator bool() const { return ok; }
};

// Tuned choices: an ordered list of named integers.
class Config {
 public:
  Config() = default;
  Config(std::initializer_list<std::pair<std::string_view, int64_t>> values);
  int64_t get(std::string_view name) const;  // throws Error(kInternal) when absent
  std::span<const std::pair<std::string, int64_t>> values() const { return values_; }
  bool operator==(const Config&) const = default;

 private:
  std::vector<std::pair<std::string, int64_t>> values_;
};

// What the physical limit is computed from. Each input and weight read once, each output written once.
struct Cost {
  double bytes = 0;
  double operations = 0;  // a multiply-add counts two
};

struct GpuLaunch;   // kernels/gpu_launch.h
struct GpuProgram;  // there too

enum class Processor : uint8_t { kCpu, kGpu };

// What a launch runs on.
struct LaunchContext {
  ThreadPool& pool;
  std::span<std::byte> workspace;  // at least workspace_bytes(problem, config), aligned to 64 bytes; for a
                                   // GPU's kernels in its memory, aligned to 256
  GpuLaunch* gpu = nullptr;        // for kernels that run on a GPU
};

struct KernelInfo {
  std::string_view name;  // "cpu.linear_plain": folder and stem
  ops::Op op;
  Processor processor = Processor::kCpu;
  // Plain float32 code written from numerics/, correct for every problem of its op: what other rows are
  // tested against, and what --reference runs.
  bool is_oracle = false;
  ops::WeightLayout layout = ops::WeightLayout::kNone;
  // Asked through kernels::supports(), so only about devices of this processor.
  Support (*supports)(const ops::Problem&, const DeviceInfo&);
  // Ranked by the analytic model; the first is the untuned choice. Never offers what supports() refuses.
  std::vector<Config> (*configs)(const ops::Problem&, const DeviceInfo&) = nullptr;  // null: one empty config
  Cost (*cost)(const ops::Problem&) = nullptr;                                       // null: ops' own count
  size_t (*workspace_bytes)(const ops::Problem&,
                            const Config&) = nullptr;  // null: none. Exact, monotone in T
  // Checkpoint form -> layout, once at load. Bytes needed, then the filling; null for kNone and kInPlace.
  size_t (*packed_bytes)(const ops::Weights&) = nullptr;
  void (*pack)(LaunchContext&, const ops::Weights&, std::span<std::byte>) = nullptr;
  // The device code that launch() needs compiled. Null for a CPU's kernels.
  std::vector<GpuProgram> (*programs)(const ops::Problem&, const DeviceInfo&, const Config&) = nullptr;
  // On a GPU: work put into the stream, all memory of `Args` the GPU's.
  void (*launch)(LaunchContext&, const ops::Problem&, const ops::Args&, const Config&);
};

// In order of preference within an op.
std::span<const KernelInfo* const> registry();
const KernelInfo* find_kernel(std::string_view name);  // nullptr when unknown

Support supports(const KernelInfo& kernel, const ops::Problem& problem, const DeviceInfo& device);
// Bytes and operations of a problem by the op's definition alone (context taken as max_context).
Cost op_cost(const ops::Problem& problem);
Cost cost_of(const KernelInfo& kernel, const ops::Problem& problem);
Config default_config(const KernelInfo& kernel, const ops::Problem& problem, const DeviceInfo& device);
size_t workspace_bytes(const KernelInfo& kernel, const ops::Problem& problem, const Config& config);

}  // namespace sinter::kernels
