// Source, options and architecture become a cubin: from the cache, or by NVRTC and then into the cache.
//
//   const jit::Compiler compiler;
//   jit::Compiled moe = compiler.compile({.path = "cuda/moe_ffn.cu", .arch = find_arch("sm_90a"),
//                                         .defines = {{"H", "6144"}}});
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "device/arch.h"
#include "jit/cache.h"
#include "jit/compiled.h"
#include "jit/nvrtc.h"
#include "jit/settings.h"
#include "jit/sources.h"

namespace sinter::jit {

struct Define {
  std::string name, value;
};

struct Request {
  std::string path;  // "cuda/moe_ffn.cu", in `sources`
  const Arch* arch = nullptr;
  std::vector<Define> defines;       // in this order; every SINTER_HAS_<FEATURE> is there already, as 0 or 1
  std::vector<std::string> options;  // of NVRTC, beyond those that every compile has
  Sources sources = embedded_sources();
};

// All that NVRTC is told for `request`: target, language, line information, report, features, defines.
std::vector<std::string> options_of(const Request& request);
// "cuda.moe_ffn": what names a kernel's file in the cache, the database, logs and profiler ranges.
std::string name_of(const Request& request);
// 32 hexadecimal digits of SHA-256 over the options, the source and all that it includes. Throws as
// with_includes() does.
std::string key_of(const Request& request);

// One of many compiles: the cubin, or what went wrong.
struct Outcome {
  std::optional<Compiled> compiled;
  std::optional<Error> error;
};

struct Progress {
  size_t num_done, num_total;  // of distinct requests; this one is counted
  std::string_view name;
  const Outcome& outcome;
};

// Bounds of a parallel compile. 0: all cores; half of the machine's memory.
struct CompileLimits {
  int num_threads = 0;
  uint64_t memory_bytes = 0;
};

class Compiler {
 public:
  explicit Compiler(Settings settings = settings_from_environment());

  // Reads and hashes: microseconds to milliseconds even from the cache, so not on the request path. Any
  // number of threads. Throws Error(kUnsupported) when neither NVRTC nor the cache has what is needed, or
  // NVRTC does not know the architecture; Error(kInternal) with file, line and the compiler's text for bad
  // source.
  Compiled compile(const Request& request) const;

  // All of `requests`, side by side; equal ones are compiled once. Outcomes in the order of the requests: one
  // failure does not stop the others. `progress` is called by one thread at a time; what it throws stops the
  // rest and is rethrown. Fills a cache ahead of time (`sinter compile`) or at start.
  std::vector<Outcome> compile_all(std::span<const Request> requests, const CompileLimits& limits = {},
                                   const std::function<void(const Progress&)>& progress = {}) const;

  // NVRTC, looked for when first asked for; or the reason why there is none.
  const NvrtcFound& nvrtc() const;
  const Cache& cache() const { return cache_; }

 private:
  Settings settings_;
  Cache cache_;
  mutable std::once_flag searched_;
  mutable NvrtcFound found_;
};

// Threads that a compile of `num_requests` gets: at most one per core, and each has room for a large compile.
int num_compile_threads(size_t num_requests, const CompileLimits& limits);

}  // namespace sinter::jit
