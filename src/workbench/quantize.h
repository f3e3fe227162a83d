// A checkpoint with some parts stored in NVFP4 or FP8, in ModelOpt's layout, the rest as it was. NVFP4 is
// ModelOpt's byte for byte; its FP8 divides in bf16 before it rounds, ours rounds once, so three codes in a
// hundred differ there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "workbench/checkpoint_writer.h"

namespace sinter::workbench {

struct QuantizeOptions {
  std::filesystem::path out;
  StoreMap store;  // nvfp4, fp8, fp8_block or mxfp4 for each part to be quantised
  ProgressReport progress;
};

struct QuantizeResult {
  int64_t num_quantized = 0, num_copied = 0;  // matrices | tensors
  int64_t bytes_before = 0, bytes_after = 0;
  // Root of the mean squared error over the root of the mean square, over all quantised matrices.
  double relative_error = 0;
  std::vector<std::string> copied_files;
};

// Matrices that share their input (gate and up; q, k and v) share one NVFP4 tensor scale, as ModelOpt's
// exporter has it. Sources that are quantised already are Error(kUnsupported).
QuantizeResult quantize(const ModelFolder& folder, ThreadPool& pool, const QuantizeOptions& options);

}  // namespace sinter::workbench
