// The only door to kernels: "run this op": chooses a row, checks the arguments, launches.
#pragma once

#include <array>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/gpu_device.h"
#include "kernels/gpu_launch.h"
#include "kernels/kernel.h"

namespace sinter::dispatch {

struct GpuRuntime;  // dispatch/gpu_runtime.h

struct Options {
  bool reference = false;    // only the plain float32 oracle rows, on a CPU
  bool pack_weights = true;  // false: use mapped weights where they lie, on a CPU
  // op -> the name of a kernel, or of a backend: "cuda.moe_ffn_decode", "cuda" (--moe-backend)
  std::map<ops::Op, std::string> forced = {};
  int64_t context = 1;  // tokens whose cache must fit into a GPU beside the weights
};

// Why a row was or was not taken for a problem.
struct Verdict {
  const kernels::KernelInfo* kernel;
  bool chosen;
  std::string reason;  // "chosen: ...", "not chosen: ...", "cannot run: ..."
};

// What became of the weights that were prepared.
struct WeightPlacement {
  uint64_t packed_bytes = 0, in_place_bytes = 0;
  std::string reason;   // "a packed copy fits, with 13.2 GB of 20.7 GB available"
  double upload_s = 0;  // to a GPU
  uint64_t uploaded_bytes = 0;
};

// One per model instance; not for several threads at once. Remembers choices and owns the workspace, which
// grows to the largest problem seen and never shrinks. On a GPU all memory that Args name is the GPU's, and
// run() puts work into one stream.
class Context {
 public:
  // Throws Error(kUsage) when a forced kernel is unknown, belongs to another op, or contradicts `reference`
  // or `pack_weights`. Of a GPU's DeviceInfo it only answers explain() and programs().
  Context(const DeviceInfo& device, ThreadPool& pool, Options options = {});
  // Computes on `gpu`. Also throws Error(kUsage) for `reference` and for unpacked weights.
  Context(const GpuDevice& gpu, ThreadPool& pool, Options options = {});
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const DeviceInfo& device() const { return device_; }
  ThreadPool& pool() const { return pool_; }
  const Options& options() const { return options_; }
  GpuRuntime* gpu() const { return gpu_.get(); }  // nullptr: computes on the CPU

  // Memory where the context computes. On a GPU not zeroed.
  Buffer allocate(size_t size_bytes) const;
  // The same for what steps write to and graphs hold the addresses of, in place of `old`, which is released
  // first. Error(kInternal) while a graph is captured: it would hold an address of what is about to go.
  void replace_step_memory(Buffer& old, size_t size_bytes);
  // Differs once such memory has moved: graphs captured before are void.
  uint64_t step_memory_epoch() const { return step_memory_epoch_; }
  // `host` where the context computes: itself on a CPU, else a copy that lives as long as the context and is
  // there after finish_uploads().
  TensorView upload(const TensorView& host);
  // Waits for upload() and prepare().
  void finish_uploads();
  // Contiguous `tensor` into host memory, after all work before; waits.
  void read(const TensorView& tensor, std::span<std::byte> host) const;
  void synchronize() const;  // waits for all work

  // Every row of the problem's op with its verdict. Without a layout: as for weights not yet prepared.
  // A forced row that cannot run, or no row at all, is reported by run() and prepare().
  std::vector<Verdict> explain(const ops::Problem& problem,
                               std::optional<ops::WeightLayout> layout = std::nullopt) const;

  // The device code that `problems` need, each with the row and the config that it gets. Throws as prepare().
  std::vector<kernels::GpuProgram> programs(std::span<const ops::Problem> problems) const;
  // Compiles and loads them ahead, side by side. Nothing on a CPU.
  void load_programs(std::span<const ops::Problem> problems,
                     const std::function<void(const jit::Progress&)>& progress = {});
  // Those that run() was asked for and that are remembered.
  std::vector<ops::Problem> problems() const;

  // Says, once and before any prepare(), how many bytes of weights are to come, and of cache per token. They
  // are packed when that is wanted, a kernel wants it, and a copy of them fits into the memory now available;
  // else they are used where they lie. Error(kMemory) when they do not fit into a GPU with the cache of
  // Options::context tokens.
  void expect_weights(uint64_t size_bytes, uint64_t cache_bytes_per_token = 0);
  const WeightPlacement& weight_placement() const { return placement_; }

  // Takes the first row, in registry order, that can run `problem` (T = 1) and packs the weights into its
  // layout; all later problems with these weights use rows of that layout. Throws Error(kUnsupported) with
  // all reasons if none can. On a GPU the matrices behind `weights` are free again on return.
  ops::PackedWeights prepare(const ops::Problem& problem, ops::Weights weights);

  void run(const ops::Problem& problem, const ops::Args& args);

 private:
  struct Choice {
    ops::Problem problem;
    ops::WeightLayout layout;
    const kernels::KernelInfo* kernel;
    kernels::Config config;
    size_t workspace_bytes;
  };
  const Choice& choose(const ops::Problem& problem, ops::WeightLayout layout);
  void check_options() const;
  void expect_gpu_weights(uint64_t size_bytes, uint64_t cache_bytes_per_token);
  kernels::LaunchContext launch_context();

  DeviceInfo device_;
  ThreadPool& pool_;
  Options options_;
  std::unique_ptr<GpuRuntime> gpu_;
  std::optional<kernels::GpuLaunch> gpu_launch_;
  bool packing_allowed_;
  WeightPlacement placement_;
  // By op, the most recently used first: one model has a dozen problems per op, times the T and the
  // power-of-two context buckets in use.
  std::array<std::list<Choice>, ops::kNumOps> choices_;
  Buffer workspace_;
  uint64_t step_memory_epoch_ = 0;
  std::vector<Buffer> uploaded_;    // of upload(); small tensors share a block
  size_t uploaded_used_bytes_ = 0;  // of the last one
};

// Tokens whose cache fits beside the weights into `free_bytes` of a GPU, some memory for work left over.
int64_t longest_gpu_context(uint64_t free_bytes, uint64_t weight_bytes, uint64_t cache_bytes_per_token);

// Bytes that this process may still take without swapping: the system's estimate, cut by the memory limit
// of the control group. Cached file pages count as available. 0: unknown.
uint64_t available_memory_bytes();

}  // namespace sinter::dispatch
