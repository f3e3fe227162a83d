// Device code of all rows for GPUs, compiled as NVRTC compiles it for a launch, for architectures that need
// not be here: no error, no register that spills in the kernels that bound a step, shared memory that fits.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "jit/compiler.h"
#include "kernels/gpu_launch.h"
#include "measure/cases.h"

namespace sinter::kernels {
namespace {

namespace fs = std::filesystem;

// Files in which a spill costs what the kernel is for.
const std::set<std::string, std::less<>> kNoSpills = {
    "cuda/linear_decode.cu", "cuda/moe_ffn_decode.cu", "cuda/moe_ffn_prefill.cu", "cuda/moe_ffn_slots.cu",
    "cuda/mla_attention.cu", "cuda/gqa_attention.cu",  "cuda/indexer.cu"};
// Known to spill on sm_120a and sm_121a, a pointer of 8 bytes: heads of 256, which no supported model has.
bool is_known_spill(const GpuProgram& program, const jit::KernelResources& kernel) {
  return program.path == "cuda/gqa_attention.cu" && program.defines.front().value == "256" &&
         kernel.spill_store_bytes <= 8;
}
// What a block may have without asking for more at launch, on every architecture.
constexpr int64_t kMostStaticBytes = int64_t{48} << 10;

std::string describe(const GpuProgram& program) {
  std::string text(program.path);
  for (const jit::Define& define : program.defines) text += fmt::format(" {}={}", define.name, define.value);
  return text;
}

bool has_gpu_rows() {
  return std::ranges::any_of(registry(),
                             [](const KernelInfo* kernel) { return kernel->processor == Processor::kGpu; });
}

const std::vector<measure::Case>& cases_of_all_uses() {
  static const std::vector<measure::Case> cases = [] {
    std::vector<measure::Case> all;
    for (const auto use : {measure::CaseUse::kTest, measure::CaseUse::kBenchmark})
      for (measure::Case& one : measure::load_cases(SINTER_SOURCE_DIR "/benchmarks/cases", use))
        all.push_back(std::move(one));
    return all;
  }();
  return cases;
}

// What the rows' launches of all cases need on `arch`, each once, in the order of their names.
std::vector<GpuProgram> programs_of_all_rows(const Arch& arch) {
  const DeviceInfo device = device_info(arch);
  std::map<std::string, GpuProgram> programs;
  for (const KernelInfo* kernel : registry()) {
    if (kernel->processor != Processor::kGpu) continue;
    size_t num_programs = 0;
    for (const measure::Case& one : cases_of_all_uses()) {
      if (ops::op_of(one.problem) != kernel->op || !supports(*kernel, one.problem, device)) continue;
      std::vector<Config> configs = {Config()};
      if (kernel->configs != nullptr) configs = kernel->configs(one.problem, device);
      for (const Config& config : configs)
        for (GpuProgram& program : kernel->programs(one.problem, device, config)) {
          ++num_programs;
          std::string key = describe(program);
          programs.emplace(std::move(key), std::move(program));
        }
    }
    EXPECT_TRUE(num_programs > 0 || !kernel->name.starts_with("cuda."))  // portable ones run everywhere
        << kernel->name << ": no case has a program";
  }
  std::vector<GpuProgram> result;
  for (auto& [key, program] : programs) result.push_back(std::move(program));
  return result;
}

// The largest of all variants of a file.
struct Largest {
  int num_variants = 0, registers = 0;
  int64_t shared_bytes = 0, spill_bytes = 0;
};

class CompileTest : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    if (!has_gpu_rows()) GTEST_SKIP() << "no row is for GPUs";
    arch_ = find_arch(GetParam());
    ASSERT_NE(arch_, nullptr);
    fs::create_directories(folder_);
    jit::Settings settings{.nvrtc = jit::settings_from_environment().nvrtc, .cache_folder = folder_};
    const fs::path python = SINTER_PYTHON;
    if (!python.empty()) settings.nvrtc.python_prefixes = {python.parent_path().parent_path()};
    compiler_.emplace(settings);
    if (const jit::NvrtcFound& found = compiler_->nvrtc(); found.nvrtc == nullptr) {
      ASSERT_TRUE(python.empty()) << found.reason;  // ./dev installs the wheel
      GTEST_SKIP() << found.reason;
    }
  }
  void TearDown() override { fs::remove_all(folder_); }

  void compile(const std::vector<GpuProgram>& programs) {
    ASSERT_FALSE(programs.empty());
    std::vector<jit::Request> requests;
    for (const GpuProgram& program : programs)
      requests.push_back(
          {.path = std::string(program.path), .arch = arch_, .defines = program.defines, .options = {}});
    const std::vector<jit::Outcome> outcomes = compiler_->compile_all(requests);
    std::map<std::string, Largest, std::less<>> largest;
    for (size_t i = 0; i < programs.size(); ++i) {
      SCOPED_TRACE(describe(programs[i]) + " for " + std::string(arch_->name));
      if (outcomes[i].error) {
        ADD_FAILURE() << outcomes[i].error->what();
        continue;
      }
      const std::vector<jit::KernelResources>& kernels = outcomes[i].compiled->kernels;
      EXPECT_FALSE(kernels.empty()) << "no kernel in the report";
      Largest& most = largest[std::string(programs[i].path)];
      ++most.num_variants;
      for (const jit::KernelResources& kernel : kernels) {
        most.registers = std::max(most.registers, kernel.registers);
        most.shared_bytes = std::max(most.shared_bytes, kernel.shared_bytes);
        most.spill_bytes = std::max(most.spill_bytes, kernel.spill_store_bytes + kernel.spill_load_bytes);
        EXPECT_LE(kernel.shared_bytes, std::min(kMostStaticBytes, arch_->block_shared_bytes)) << kernel.name;
        EXPECT_FALSE(kernel.spills() && kNoSpills.contains(programs[i].path) &&
                     !is_known_spill(programs[i], kernel))
            << kernel.name << " spills " << kernel.spill_store_bytes << " bytes at " << kernel.registers
            << " registers";
      }
    }
    std::printf("file | arch | variants | registers | static shared bytes | spilled bytes\n");
    for (const auto& [path, most] : largest)
      std::printf("%s | %s | %d | %d | %lld | %lld\n", path.c_str(), std::string(arch_->name).c_str(),
                  most.num_variants, most.registers, static_cast<long long>(most.shared_bytes),
                  static_cast<long long>(most.spill_bytes));
  }

  const Arch* arch_ = nullptr;
  std::optional<jit::Compiler> compiler_;

 private:
  const fs::path folder_ =
      fs::temp_directory_path() / fmt::format("sinter_compile_all_{}_{}", ::getpid(), GetParam());
};

class SlowCompile : public CompileTest {};
TEST_P(SlowCompile, AllVariantsOfAllRows) { compile(programs_of_all_rows(*arch_)); }

class Compile : public CompileTest {};
TEST_P(Compile, OneVariantOfEachFile) {
  std::vector<GpuProgram> programs;
  for (GpuProgram& program : programs_of_all_rows(*arch_))
    if (programs.empty() || programs.back().path != program.path) programs.push_back(std::move(program));
  compile(programs);
}

std::vector<std::string_view> all_arch_names() {
  std::vector<std::string_view> names;
  for (const Arch& arch : archs()) names.push_back(arch.name);
  return names;
}

const auto arch_name = [](const auto& test) { return std::string(test.param); };
INSTANTIATE_TEST_SUITE_P(Archs, SlowCompile, testing::ValuesIn(all_arch_names()), arch_name);
INSTANTIATE_TEST_SUITE_P(Archs, Compile, testing::Values("sm_80", "sm_120a"), arch_name);

}  // namespace
}  // namespace sinter::kernels
