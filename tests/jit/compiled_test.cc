#include "jit/compiled.h"

#include <cstdio>

#include "fixture.h"

namespace sinter::jit {
namespace {

TEST(ParseResources, ReadsEveryKernel) {
  // sm_80 names constant memory too, functions that are not inlined come between.
  const auto kernels =
      parse_resources(R"(cuda/a.cu(2): warning #177-D: variable "u" was declared but never referenced
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for k
ptxas         .     352 bytes stack frame, 392 bytes spill stores, 396 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 352 bytes cumulative stack size, 360 bytes cmem[0]
ptxas info    : Compile time = 21.058 ms
ptxas info    : Compiling entry function '_Z1gPf' for 'sm_80'
ptxas info    : Function properties for _Z1gPf
    40 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas         .     40 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 64 bytes cumulative stack size, 49152 bytes smem, 360 bytes cmem[0]
ptxas info    : Function properties for called
ptxas         .     8 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
)");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0], (KernelResources{"k", 32, 0, 352, 392, 396}));
  EXPECT_EQ(kernels[1], (KernelResources{"_Z1gPf", 168, 49152, 64, 4, 8}));
  EXPECT_TRUE(kernels[0].spills());
}

TEST(ParseResources, SurvivesAnyText) {
  EXPECT_TRUE(parse_resources("").empty());
  EXPECT_TRUE(parse_resources("ptxas info : Used 3 registers\nregisters").empty());
  const auto kernels =
      parse_resources("ptxas : Compiling entry function 'k\nptxas registers\nptxas  bytes smem");
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0], KernelResources{"k"});
}

class ResourcesTest : public JitTest {};

TEST_F(ResourcesTest, OfACompileTellSpillsAndSharedMemory) {
  need_nvrtc();
  for (const char* arch : {"sm_80", "sm_90a", "sm_120a"}) {
    const Compiled compiled = compiler().compile(request("cuda/spill.cu", arch));
    ASSERT_EQ(compiled.kernels.size(), 2u) << compiled.log;
    const bool spill_first = compiled.kernels[0].name == "spill";
    const KernelResources& spill = compiled.kernels[spill_first ? 0 : 1];
    const KernelResources& no_spill = compiled.kernels[spill_first ? 1 : 0];
    EXPECT_EQ(no_spill.name, "no_spill");
    EXPECT_TRUE(spill.spills()) << arch;
    EXPECT_GT(spill.registers, 16);
    EXPECT_GT(spill.stack_bytes, 0);
    EXPECT_EQ(spill.shared_bytes, 0);
    EXPECT_FALSE(no_spill.spills()) << arch;
    EXPECT_EQ(no_spill.shared_bytes, 256);
    EXPECT_GE(no_spill.stack_bytes, 40) << "of the function it calls";
  }
}

TEST_F(ResourcesTest, AgreeWithCuobjdump) {
  if (std::string(SINTER_CUOBJDUMP).empty()) GTEST_SKIP() << "no cuobjdump on this machine";
  need_nvrtc();
  for (const char* arch : {"sm_80", "sm_90a", "sm_120a"}) {
    const Compiled compiled = compiler().compile(request("cuda/spill.cu", arch));
    const fs::path path = folder_ / "kernel.cubin";
    std::ofstream(path).write(reinterpret_cast<const char*>(compiled.cubin.data()),
                              std::ssize(compiled.cubin));
    FILE* pipe =
        ::popen(fmt::format("{} --dump-resource-usage {}", SINTER_CUOBJDUMP, path.string()).c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    char line[1024], name[1024];
    int num_kernels = 0, registers = 0, stack = 0, shared = 0;
    while (std::fgets(line, sizeof line, pipe) != nullptr) {
      std::sscanf(line, " Function %1023[^:]", name);
      if (std::sscanf(line, " REG:%d STACK:%d SHARED:%d", &registers, &stack, &shared) != 3) continue;
      ++num_kernels;
      const auto kernel = std::ranges::find(compiled.kernels, name, &KernelResources::name);
      ASSERT_NE(kernel, compiled.kernels.end()) << line;
      EXPECT_EQ(kernel->registers, registers) << arch << " " << name;
      EXPECT_EQ(kernel->stack_bytes, stack) << arch << " " << name;
      const int reserved = shared > 0 && std::string_view(arch) != "sm_80" ? 1024 : 0;
      EXPECT_EQ(kernel->shared_bytes, shared - reserved) << arch << " " << name;
    }
    ::pclose(pipe);
    EXPECT_EQ(num_kernels, 2);
  }
}

}  // namespace
}  // namespace sinter::jit
