// Fills the cache of compiled device code ahead of time, on any machine with NVRTC.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "device/arch.h"
#include "jit/compiler.h"
#include "workbench/inventory.h"

namespace sinter::workbench {

struct CompileOptions {
  const Arch* arch = nullptr;
  int64_t chunk = 512;     // tokens of a step, at most
  int64_t context = 4096;  // tokens
  int num_threads = 0;     // 0: one per core
  std::function<void(int64_t done, int64_t total)> progress = {};
};

struct CompileResult {
  int64_t num_compiled = 0, num_cached = 0;
  double seconds = 0;
  std::string cache_folder;
};

// What every step of the model up to `chunk` and `context` needs. Throws the first error after all are tried,
// and Error(kUnsupported) when the architecture lacks a kernel for one of them.
CompileResult compile_model(const ModelFolder& folder, const Inventory& inventory,
                            const CompileOptions& options);

}  // namespace sinter::workbench
