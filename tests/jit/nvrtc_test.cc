#include "jit/nvrtc.h"

#include "base/file_map.h"
#include "fixture.h"

namespace sinter::jit {
namespace {

class NvrtcTest : public JitTest {
 protected:
  static std::string reason(const fs::path& named) {
    const NvrtcFound found = open_nvrtc({.named = named, .python_prefixes = {}});
    EXPECT_EQ(found.nvrtc, nullptr);
    EXPECT_FALSE(found.mend.empty());
    return found.reason;
  }
};

TEST_F(NvrtcTest, IsFoundInTheWheelAndCompilesWithItsOwnBuiltins) {
  need_nvrtc();
  const NvrtcFound found = open_nvrtc(test_nvrtc());
  ASSERT_NE(found.nvrtc, nullptr);
  EXPECT_GE(found.nvrtc->major(), 12);
  const Nvrtc::Output output =
      found.nvrtc->compile(with_includes(kSources, "cuda/scale.cu"), options_of(request("cuda/scale.cu")));
  ASSERT_EQ(output.status, Nvrtc::Output::Status::kOk) << output.log;
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(output.cubin.data()), 4),
            "\x7f"
            "ELF");
  if (std::string(SINTER_PYTHON).empty()) return;
  // The second library is asked for by a bare name: another of the machine must not take its place.
  std::ifstream maps("/proc/self/maps");
  int num_builtins = 0;
  for (std::string line; std::getline(maps, line);) {
    if (!contains(line, "libnvrtc-builtins")) continue;
    ++num_builtins;
    EXPECT_TRUE(contains(line, found.nvrtc->path().parent_path().string())) << line;
  }
  EXPECT_GT(num_builtins, 0);
}

TEST_F(NvrtcTest, MayBeNamedByFileOrFolder) {
  need_nvrtc();
  const fs::path library = open_nvrtc(test_nvrtc()).nvrtc->path();
  for (const fs::path& named : {library, library.parent_path()}) {
    const NvrtcFound found = open_nvrtc({.named = named, .python_prefixes = {}});
    ASSERT_NE(found.nvrtc, nullptr) << found.reason;
    EXPECT_TRUE(fs::equivalent(found.nvrtc->path(), library));
  }
}

TEST_F(NvrtcTest, WhatIsNamedIsUsedOrRefused) {
  std::ofstream(folder_ / "text.so") << "no library";
  EXPECT_TRUE(contains(reason(folder_ / "no_such.so"), "no_such.so: no NVRTC there"));
  EXPECT_TRUE(contains(reason(folder_), folder_.string()));
  EXPECT_TRUE(contains(reason(folder_ / "text.so"), "file too short")) << reason(folder_ / "text.so");
  EXPECT_TRUE(contains(reason("libc.so.6"), "libc.so.6 is no NVRTC of CUDA 12 or 13"));
}

TEST_F(NvrtcTest, MissingIsAReasonAndAMend) {
  const NvrtcFound found = open_nvrtc(no_nvrtc());
  EXPECT_EQ(found.nvrtc, nullptr);
  EXPECT_EQ(found.reason, "NVRTC is neither on the loader's path nor in a Python");
  EXPECT_TRUE(contains(found.mend, "pip install 'nvidia-cuda-nvrtc==13.0.*'"));
}

// The layout of both wheels, and what a broken one is called.
TEST_F(NvrtcTest, LooksIntoEveryPackageFolder) {
  for (const char* place : {"lib/python3.9/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
                            "lib/python3/dist-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"}) {
    fs::create_directories((folder_ / place).parent_path());
    std::ofstream(folder_ / place) << "broken";
    const NvrtcFound found =
        open_nvrtc({.named = {}, .python_prefixes = {"/no/such", folder_}, .loader_path = false});
    EXPECT_EQ(found.nvrtc, nullptr);
    EXPECT_TRUE(contains(found.reason, (folder_ / place).string())) << found.reason;
  }
}

}  // namespace
}  // namespace sinter::jit
