// A checkpoint with random weights of any configuration: real names, shapes and layouts, for speed work and
// tests without a download.
#pragma once

#include <cstdint>
#include <filesystem>

#include "workbench/checkpoint_writer.h"

namespace sinter::workbench {

struct SynthOptions {
  std::filesystem::path out;
  uint64_t seed = 0;
  StoreMap store;          // over what the configuration says
  int64_t num_layers = 0;  // the first of them; 0: all
  ProgressReport progress;
};

struct SynthResult {
  int64_t num_tensors = 0, num_parameters = 0, bytes = 0, num_shards = 0;
};

// Deterministic in the seed and the tensor's name alone. Every matrix has outputs of variance 1 for inputs
// of variance 1, so activations stay in range at any depth.
SynthResult synthesize(const ModelFolder& config, const SynthOptions& options);

}  // namespace sinter::workbench
