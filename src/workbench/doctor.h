// Whether a model runs on this machine, and with which kernels, without loading it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workbench/kernel_list.h"
#include "workbench/machine.h"

namespace sinter::workbench {

struct ModelReport {
  std::vector<Finding> findings;
  int64_t weight_bytes = 0, cache_bytes_per_token = 0;
  std::string device;
  int64_t longest_context = 0;  // that memory and model allow; where the memory is unknown the model's
  std::vector<ProblemVerdicts> decode, prefill;
  bool can_run() const;  // no failure among the findings
};

// On `device`: this machine's CPU or one of its GPUs; or a GPU that is not here, whose memory may be unknown.
ModelReport examine_model(const ModelFolder& folder, const StoreMap& what_if, const DeviceInfo& device);

}  // namespace sinter::workbench
