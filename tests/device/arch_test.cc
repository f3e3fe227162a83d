#include "device/arch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "base/error.h"

namespace sinter {
namespace {

TEST(Arch, RowsAreFoundByNameAndByCapability) {
  EXPECT_EQ(archs().size(), 10u);
  for (const Arch& arch : archs()) {
    EXPECT_EQ(find_arch(arch.name), &arch);
    EXPECT_EQ(arch_of(arch.major, arch.minor), &arch);
    const std::string digits = fmt::format("sm_{}{}", arch.major, arch.minor);
    EXPECT_TRUE(arch.name == digits || arch.name == digits + "a") << arch.name;
  }
  for (size_t i = 1; i < archs().size(); ++i) {
    const Arch &a = archs()[i - 1], &b = archs()[i];
    EXPECT_LT(10 * a.major + a.minor, 10 * b.major + b.minor) << "ascending";
  }
  EXPECT_EQ(find_arch("sm_90"), nullptr) << "plain targets lack the instructions";
  EXPECT_EQ(find_arch(""), nullptr);
  EXPECT_EQ(arch_of(7, 5), nullptr) << "too old";
  EXPECT_EQ(arch_of(8, 8), nullptr) << "unknown";
  EXPECT_EQ(arch_of(13, 0), nullptr) << "unknown";
}

TEST(Arch, LimitsAreThoseOfTheProgrammingGuide) {
  const std::map<std::string_view, int64_t> block_shared_kib = {
      {"sm_80", 163},   {"sm_86", 99},    {"sm_87", 163},   {"sm_89", 99},   {"sm_90a", 227},
      {"sm_100a", 227}, {"sm_103a", 227}, {"sm_110a", 227}, {"sm_120a", 99}, {"sm_121a", 99}};
  for (const Arch& arch : archs()) {
    EXPECT_EQ(arch.block_shared_bytes, block_shared_kib.at(arch.name) * 1024) << arch.name;
    EXPECT_EQ(arch.sm_shared_bytes, arch.block_shared_bytes + 1024) << arch.name;
    EXPECT_EQ(arch.sm_registers, 65536) << arch.name;
    EXPECT_TRUE(arch.sm_threads == 2048 || arch.sm_threads == 1536) << arch.name;
    EXPECT_GE(arch.block_shared_bytes, 99 * 1024) << "what portable kernels may take: " << arch.name;
  }
  EXPECT_EQ(find_arch("sm_90a")->sm_threads, 2048);
  EXPECT_EQ(find_arch("sm_110a")->sm_threads, 1536);
  EXPECT_EQ(find_arch("sm_120a")->sm_threads, 1536);
}

// One instruction of each feature. Registers are declared wide enough for all of them.
const std::map<std::string_view, std::string_view> kProbes = {
    {"FP8_CONVERT", "cvt.rn.satfinite.e4m3x2.f32 h0, f0, f1; cvt.rn.f16x2.e4m3x2 r0, h0;"},
    {"FP8_MMA",
     "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {f0, f1, f2, f3}, {r0, r1, r2, r3}, {r4, r5}, "
     "{f0, f1, f2, f3};"},
    {"FP4_CONVERT", "cvt.rn.satfinite.e2m1x2.f32 b0, f0, f1; cvt.rn.f16x2.e2m1x2 r0, b0;"},
    {"BLOCK_SCALED_MMA",
     "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 "
     "{f0, f1, f2, f3}, {r0, r1, r2, r3}, {r4, r5}, {f0, f1, f2, f3}, r6, {0, 0}, r7, {0, 0};"},
    {"BULK_COPY",
     "mbarrier.arrive.expect_tx.shared.b64 _, [r1], 16;"
     "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [r0], [d0], 16, [r1];"},
    {"CLUSTERS", "mapa.shared::cluster.u32 r0, r1, 0; barrier.cluster.arrive; barrier.cluster.wait;"},
    {"DEPENDENT_LAUNCH", "griddepcontrol.launch_dependents; griddepcontrol.wait;"},
    {"WGMMA", "wgmma.fence.sync.aligned; wgmma.commit_group.sync.aligned;"},
    {"TCGEN05", "tcgen05.wait::ld.sync.aligned; tcgen05.fence::before_thread_sync;"},
};

TEST(Arch, EachFeatureIsWhatTheAssemblerAccepts) {
  const std::string ptxas = SINTER_PTXAS;
  if (ptxas.empty()) GTEST_SKIP() << "no ptxas on the machine that built this";
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("sinter_arch_test.{}", ::getpid());
  std::filesystem::create_directories(folder);
  const std::string input = (folder / "probe.ptx").string();
  const auto assembles = [&](const Arch& arch, std::string_view instructions) {
    std::ofstream(input) << ".version 9.0\n.target " << arch.name << "\n.address_size 64\n"
                         << ".visible .entry probe() {\n.reg .b8 b<1>; .reg .b16 h<1>; .reg .b32 r<8>; "
                            ".reg .b64 d<1>; .reg .f32 f<4>;\n"
                         << instructions << "\nret;\n}\n";
    const std::string command =
        fmt::format("{} -arch={} -o /dev/null {} 2>/dev/null", ptxas, arch.name, input);
    return std::system(command.c_str()) == 0;
  };
  if (!assembles(*find_arch("sm_121a"), ""))
    GTEST_SKIP() << ptxas << " is not here, or does not know PTX 9.0";
  for (const Arch& arch : archs()) {
    EXPECT_TRUE(assembles(arch, "")) << arch.name;
    for (const ArchFeature& feature : arch_features()) {
      ASSERT_TRUE(kProbes.contains(feature.name)) << feature.name << " has no probe";
      EXPECT_EQ(assembles(arch, kProbes.at(feature.name)), arch.*feature.has)
          << arch.name << " " << feature.name;
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sinter
