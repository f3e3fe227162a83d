// Weights for a configuration that has none, for speed work without a download.
#pragma once

#include <cstdint>

#include "workbench/synth.h"

namespace sinter::workbench {

// `config` with random weights as of synthesize(): written to a folder in TMPDIR, mapped, and unlinked, so
// that nothing is left whatever happens. Throws Error(kUsage) for a folder that has weights.
ModelFolder with_random_weights(const ModelFolder& config, uint64_t seed, const ProgressReport& progress);

}  // namespace sinter::workbench
