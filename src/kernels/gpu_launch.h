// What a GPU's kernels are launched with, and the device code behind them.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/gpu_module.h"
#include "device/gpu_stream.h"
#include "device/gpu_uploader.h"
#include "jit/compiler.h"
#include "kernels/kernel.h"

namespace sinter::kernels {

// One compile: a file of src/kernels and what the problem fixes in it.
struct GpuProgram {
  std::string_view path;             // "cuda/linear_decode.cu"
  std::vector<jit::Define> defines;  // {"SINTER_X", "Bf16"}, in a fixed order
};

// The programs of one GPU: compiled once for its architecture (or found in the JIT's cache), loaded once.
// Not for several threads at once.
class GpuPrograms {
 public:
  // `compiler` outlives it.
  GpuPrograms(const GpuDevice& device, const jit::Compiler& compiler);
  ~GpuPrograms();
  GpuPrograms(const GpuPrograms&) = delete;
  GpuPrograms& operator=(const GpuPrograms&) = delete;

  // Compiles and loads `programs` ahead, side by side, known ones and repetitions left out. Throws the first
  // error in their order, after all have ended.
  void load(std::span<const GpuProgram> programs,
            const std::function<void(const jit::Progress&)>& progress = {});

  // A kernel of a program; compiles and loads it when load() has not, and throws as load() does. Valid as
  // long as this object.
  const GpuFunction& function(const GpuProgram& program, const std::string& name);

  int num_compiled() const { return num_compiled_; }  // not found in the cache

 private:
  struct Loaded;
  const GpuDevice device_;
  const jit::Compiler& compiler_;
  std::map<std::string, Loaded> loaded_;  // by path and defines
  int num_compiled_ = 0;
};

struct GpuLaunch {
  GpuStream& stream;
  GpuPrograms& programs;
  GpuUploader& uploader;  // of pack(), on a stream of its own: pack() does not wait for it
};

}  // namespace sinter::kernels
