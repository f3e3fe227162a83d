// The only door to kernels: "run this op": chooses a row, checks the arguments, launches.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace sinter::dispatch {

struct Options {
  bool reference = false;                    // only the plain float32 oracle rows
  bool pack_weights = true;                  // false: use mapped weights where they lie
  std::map<ops::Op, std::string> forced;     // op -> kernel name (--moe-backend and the like)
};

// Why a row was or was not taken for a problem.
struct Verdict {
  const kernels::KernelInfo* kernel;
  bool chosen;
  std::string reason;  // "chosen: ...", "not chosen: ...", "cannot run: ..."
};

// One per model instance; not for several threads at once. Remembers choices and owns the workspace, which
// grows to the largest problem seen and never shrinks.
class Context {
 public:
  Context(const DeviceInfo& device, ThreadPool& pool, Options options = {});

  const DeviceInfo& device() const { return device_; }
  ThreadPool& pool() const { return pool_; }
  const Options& options() const { return options_; }

  // Every row of the problem's op with its verdict. A forced row that cannot run, or no row at all, is
  // reported by choose().
  std::vector<Verdict> explain(const ops::Problem& problem, ops::WeightLayout layout) const;

  // Takes the first row, in registry order, that can run `problem` (T = 1) and packs the weights into its
  // layout; all later problems with these weights use rows of that layout. Throws Error(kUnsupported) with
  // all reasons if none can.
  ops::PackedWeights prepare(const ops::Problem& problem, ops::Weights weights);

  void run(const ops::Problem& problem, const ops::Args& args);

 private:
  struct Choice {
    const kernels::KernelInfo* kernel;
    kernels::Config config;
    size_t workspace_bytes;
  };
  const Choice& choose(const ops::Problem& problem, ops::WeightLayout layout);

  const DeviceInfo& device_;
  ThreadPool& pool_;
  Options options_;
  // Few: T and the power-of-two context bucket are all that vary for one model.
  std::vector<std::pair<std::pair<ops::Problem, ops::WeightLayout>, Choice>> choices_;
  Buffer workspace_;
};

}  // namespace sinter::dispatch
