// What the tests of jit share: a folder of their own, NVRTC of the tests' Python, and what the library says.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "jit/compiler.h"

namespace sinter::jit {
namespace fs = std::filesystem;

// A program with one header, small enough to compile in milliseconds.
constexpr SourceFile kSources[] = {
    {"cuda/scale.cu",
     "#include \"gpu/times.h\"\n"
     "extern \"C\" __global__ void scale(float* x) {\n"
     "  __shared__ float s[both_sides(32)];\n"
     "  s[threadIdx.x] = x[threadIdx.x];\n"
     "  __syncthreads();\n"
     "  x[threadIdx.x] = times(s[63 - threadIdx.x]);\n"
     "}\n"},
    {"cuda/bad.cu",
     "extern \"C\" __global__ void bad(float* x) {\n"
     "  int unused;\n"
     "  x[0] = first_mistake;\n"
     "  x[1] = second_mistake;\n"
     "}\n"},
    {"cuda/bad_include.cu", "#include \"gpu/bad.h\"\n"},
    {"cuda/bad_instruction.cu",
     "extern \"C\" __global__ void bad(float* x) { asm volatile(\"no_such_instruction;\"); }\n"},
    {"cuda/spill.cu",
     "extern \"C\" __global__ void __launch_bounds__(1024, 2) spill(float* x) {\n"
     "  float a[64];\n"
     "#pragma unroll\n"
     "  for (int i = 0; i < 64; ++i) a[i] = x[i * threadIdx.x];\n"
     "#pragma unroll\n"
     "  for (int i = 0; i < 64; ++i) x[i] = a[63 - i] * a[i] + a[i * 7 % 64];\n"
     "}\n"
     "__device__ __noinline__ float called(float x) {\n"
     "  volatile float b[10];\n"
     "  b[static_cast<int>(x) % 10] = x;\n"
     "  return b[3] + 1;\n"
     "}\n"
     "extern \"C\" __global__ void no_spill(float* x) {\n"
     "  __shared__ float s[64];\n"
     "  s[threadIdx.x] = x[0];\n"
     "  __syncthreads();\n"
     "  x[1] = s[3] + called(x[2]);\n"
     "}\n"},
    {"gpu/bad.h", "\n__device__ float f() { return mistake; }\n"},
    {"gpu/times.h",
     "#pragma once\n#ifndef FACTOR\n#define FACTOR 2\n#endif\n"
     "__device__ inline float times(float x) { return FACTOR * x; }\n"
     "constexpr int both_sides(int n) { return 2 * n; }\n"},
};

inline Request request(std::string path, std::string_view arch = "sm_90a") {
  return {
      .path = std::move(path), .arch = find_arch(arch), .defines = {}, .options = {}, .sources = kSources};
}

// The wheel of the tests' Python and nothing else; without a Python whatever the machine has.
inline NvrtcPlaces test_nvrtc() {
  const fs::path python = SINTER_PYTHON;
  if (python.empty()) return settings_from_environment().nvrtc;
  return {.named = {}, .python_prefixes = {python.parent_path().parent_path()}, .loader_path = false};
}

inline NvrtcPlaces no_nvrtc() { return {.named = {}, .python_prefixes = {}, .loader_path = false}; }

class JitTest : public testing::Test {
 protected:
  JitTest() {
    fs::create_directories(folder_);
    set_log_sink([this](LogLevel level, std::string_view message) {
      const std::lock_guard lock(mutex_);
      if (level == LogLevel::kWarning) warnings_.emplace_back(message);
    });
  }
  ~JitTest() override {
    set_log_sink({});
    fs::remove_all(folder_);
  }

  Compiler compiler() const { return Compiler({.nvrtc = test_nvrtc(), .cache_folder = folder_ / "cache"}); }
  Compiler compiler_without_nvrtc() const {
    return Compiler({.nvrtc = no_nvrtc(), .cache_folder = folder_ / "cache"});
  }
  // Needs an NVRTC; a Python without the wheel is a failure, for it is what ./dev installs.
  void need_nvrtc() {
    const NvrtcFound found = open_nvrtc(test_nvrtc());
    if (found.nvrtc != nullptr) return;
    ASSERT_TRUE(std::string(SINTER_PYTHON).empty()) << found.reason;
    GTEST_SKIP() << found.reason;
  }
  int num_warnings(std::string_view part) const {
    return static_cast<int>(std::ranges::count_if(
        warnings_, [&](const std::string& text) { return text.find(part) != std::string::npos; }));
  }

  const fs::path folder_ =
      fs::temp_directory_path() / fmt::format("sinter_jit_{}_{}", ::getpid(),
                                              testing::UnitTest::GetInstance()->current_test_info()->name());
  std::vector<std::string> warnings_;
  std::mutex mutex_;
};

// Files below `folder`, relative, sorted.
inline std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> files;
  if (fs::exists(folder))
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file()) files.push_back(entry.path().lexically_relative(folder).string());
  std::ranges::sort(files);
  return files;
}

template <typename Action>
Error error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::kInternal, {.where = "no error", .expected = {}, .found = {}, .mend = {}});
}

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace sinter::jit
