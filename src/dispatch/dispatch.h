// The only door to kernels: "run this op": chooses a row, checks the arguments, launches.
#pragma once

#include <array>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace sinter::dispatch {

struct Options {
  bool reference = false;                      // only the plain float32 oracle rows
  bool pack_weights = true;                    // false: use mapped weights where they lie
  std::map<ops::Op, std::string> forced = {};  // op -> kernel name (--moe-backend)
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
  std::string reason;  // "a packed copy fits, with 13.2 GB of 20.7 GB available"
};

// One per model instance; not for several threads at once. Remembers choices and owns the workspace, which
// grows to the largest problem seen and never shrinks.
class Context {
 public:
  // Throws Error(kUsage) when a forced kernel is unknown, belongs to another op, or contradicts `reference`
  // or `pack_weights`.
  Context(const DeviceInfo& device, ThreadPool& pool, Options options = {});

  const DeviceInfo& device() const { return device_; }
  ThreadPool& pool() const { return pool_; }
  const Options& options() const { return options_; }

  // Every row of the problem's op with its verdict. Without a layout: as for weights not yet prepared.
  // A forced row that cannot run, or no row at all, is reported by run() and prepare().
  std::vector<Verdict> explain(const ops::Problem& problem,
                               std::optional<ops::WeightLayout> layout = std::nullopt) const;

  // Says, once and before any prepare(), how many bytes of weights are to come. They are packed when that
  // is wanted, a kernel wants it, and a copy of them fits into the memory now available; else they are used
  // where they lie.
  void expect_weights(uint64_t size_bytes);
  const WeightPlacement& weight_placement() const { return placement_; }

  // Takes the first row, in registry order, that can run `problem` (T = 1) and packs the weights into its
  // layout; all later problems with these weights use rows of that layout. Throws Error(kUnsupported) with
  // all reasons if none can.
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

  const DeviceInfo& device_;
  ThreadPool& pool_;
  Options options_;
  bool packing_allowed_;
  WeightPlacement placement_;
  // By op, the most recently used first: one model has a dozen problems per op, times the T and the
  // power-of-two context buckets in use.
  std::array<std::list<Choice>, ops::kNumOps> choices_;
  Buffer workspace_;
};

// Bytes that this process may still take without swapping: the system's estimate, cut by the memory limit
// of the control group. Cached file pages count as available. 0: unknown.
uint64_t available_memory_bytes();

}  // namespace sinter::dispatch
