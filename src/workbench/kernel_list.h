// The registry as a person wants it: what each kernel runs here, and which one a model gets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dispatch/dispatch.h"
#include "workbench/model_problems.h"

namespace sinter::workbench {

struct KernelRow {
  const kernels::KernelInfo* kernel;
  bool can_run = false;  // something of its op on this machine
  std::string reason;    // why not; empty when it can
};

// Every row of the registry, or of one op. Tried with an example problem of each weight format.
std::vector<KernelRow> list_kernels(const DeviceInfo& device, std::optional<ops::Op> op);

struct ProblemVerdicts {
  ModelProblem problem;
  std::vector<dispatch::Verdict> verdicts;
  const dispatch::Verdict* chosen() const;  // nullptr: nothing can run it
};
std::vector<ProblemVerdicts> explain_model(const dispatch::Context& context,
                                           std::vector<ModelProblem> problems);

// Throws Error(kUsage) naming all ops.
ops::Op find_op(std::string_view name);

}  // namespace sinter::workbench
