#include "jit/compiler.h"

#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <set>

#include "base/file_map.h"
#include "fixture.h"

namespace sinter::jit {
namespace {

class CompilerTest : public JitTest {
 protected:
  fs::path entry_of(const Request& r) const {
    return folder_ / "cache" / ("nvrtc-" + open_nvrtc(test_nvrtc()).nvrtc->version()) / r.arch->name /
           (name_of(r) + "-" + key_of(r));
  }
};

TEST(CompilerOptions, TellTargetFeaturesAndDefinesInOrder) {
  Request r = request("cuda/scale.cu", "sm_90a");
  r.defines = {{"H", "6144"}, {"A", "8"}};
  r.options = {"--use_fast_math"};
  const std::vector<std::string> options = options_of(r);
  const auto at = [&](std::string_view option) {
    return std::ranges::find(options, option) - options.begin();
  };
  EXPECT_EQ(at("--gpu-architecture=sm_90a"), 0);
  EXPECT_LT(at("-DSINTER_HAS_WGMMA=1"), at("-DH=6144"));
  EXPECT_LT(at("-DSINTER_HAS_TCGEN05=0"), at("-DH=6144"));
  EXPECT_EQ(at("-DA=8"), at("-DH=6144") + 1);
  EXPECT_EQ(at("--use_fast_math"), std::ssize(options) - 1);
  for (const char* option : {"--std=c++17", "--generate-line-info"})
    EXPECT_LT(at(option), std::ssize(options));
  for (const ArchFeature& feature : arch_features())
    EXPECT_EQ(
        std::ranges::count_if(options,
                              [&](const std::string& option) {
                                return option.starts_with(fmt::format("-DSINTER_HAS_{}=", feature.name));
                              }),
        1);
}

TEST(CompilerKey, ChangesWithEverythingThatTheCubinDependsOn) {
  Request r = request("cuda/scale.cu");
  std::set<std::string> keys{key_of(r)};
  EXPECT_EQ(key_of(r), *keys.begin());
  EXPECT_EQ(key_of(r).size(), 32u);
  const auto is_new = [&](const Request& changed) { return keys.insert(key_of(changed)).second; };

  EXPECT_TRUE(is_new(request("cuda/scale.cu", "sm_80")));
  Request changed = r;
  changed.defines = {{"A", "1"}, {"B", "2"}};
  EXPECT_TRUE(is_new(changed));
  std::swap(changed.defines[0], changed.defines[1]);
  EXPECT_TRUE(is_new(changed));
  changed.defines = {{"A", "1 -DB=2"}};
  EXPECT_TRUE(is_new(changed));
  changed = r;
  changed.options = {"--use_fast_math"};
  EXPECT_TRUE(is_new(changed));

  std::vector<SourceFile> files(std::begin(kSources), std::end(kSources));
  changed = r;
  changed.sources = files;
  EXPECT_FALSE(is_new(changed));
  const std::string program = std::string(files[0].text) + "\n",
                    header = std::string(files.back().text) + "\n";
  files[0].text = program;
  EXPECT_TRUE(is_new(changed)) << "the source";
  files[0].text = kSources[0].text;
  files.back().text = header;
  EXPECT_TRUE(is_new(changed)) << "an include";
  files.back().text = kSources[std::size(kSources) - 1].text;
  files[1].text = "// another";
  EXPECT_FALSE(is_new(changed)) << "a file that it does not include";
}

TEST_F(CompilerTest, CompilesOnceAndThenReadsTheCache) {
  need_nvrtc();
  const Compiled first = compiler().compile(request("cuda/scale.cu"));
  EXPECT_FALSE(first.from_cache);
  ASSERT_EQ(first.kernels.size(), 1u) << first.log;
  EXPECT_EQ(first.kernels[0].name, "scale");
  EXPECT_EQ(first.kernels[0].shared_bytes, 256);
  EXPECT_EQ(first.name, "cuda.scale");
  const Compiled second = compiler().compile(request("cuda/scale.cu"));
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(second.cubin, first.cubin);
  EXPECT_EQ(second.kernels, first.kernels);
  EXPECT_EQ(second.log, first.log);
  EXPECT_EQ(second.key, first.key);
  EXPECT_TRUE(warnings_.empty()) << warnings_[0];
  EXPECT_TRUE(fs::exists(entry_of(request("cuda/scale.cu")) / "kernel.cubin"));
}

TEST_F(CompilerTest, DefinesReachTheCode) {
  need_nvrtc();
  Request r = request("cuda/scale.cu");
  const std::vector<std::byte> two = compiler().compile(r).cubin;
  r.defines = {{"FACTOR", "3"}};
  EXPECT_NE(compiler().compile(r).cubin, two);
  r.defines = {{"FACTOR", "missing"}};
  EXPECT_EQ(error_of([&] { compiler().compile(r); }).detail().where, "gpu/times.h:5");
}

TEST_F(CompilerTest, TheCommandBesideACubinRepeatsTheCompile) {
  if (std::string(SINTER_NVCC).empty()) GTEST_SKIP() << "no nvcc on this machine";
  need_nvrtc();
  Request r = request("cuda/scale.cu");
  r.defines = {{"FACTOR", "(1 + 'a')"}};
  compiler().compile(r);
  const std::string command =
      fmt::format("cd '{}' && PATH=\"$(dirname {}):$PATH\" sh ./command.txt >nvcc.txt 2>&1",
                  entry_of(r).string(), SINTER_NVCC);
  ASSERT_EQ(std::system(command.c_str()), 0) << read_text_file(entry_of(r) / "nvcc.txt");
  EXPECT_TRUE(fs::exists(entry_of(r) / "again.cubin"));
}

TEST_F(CompilerTest, BadSourceNamesFileAndLineAndTheTextOnce) {
  need_nvrtc();
  const Error error = error_of([&] { compiler().compile(request("cuda/bad.cu")); });
  EXPECT_EQ(error.detail().where, "cuda/bad.cu:3");
  EXPECT_EQ(
      error.detail().found,
      "identifier \"first_mistake\" is undefined; cuda/bad.cu:4: identifier \"second_mistake\" is undefined");
  EXPECT_TRUE(contains(error.detail().mend, "for sm_90a"));
  EXPECT_EQ(error_of([&] { compiler().compile(request("cuda/bad_include.cu")); }).detail().where,
            "gpu/bad.h:2");
  const Error assembler = error_of([&] { compiler().compile(request("cuda/bad_instruction.cu")); });
  EXPECT_EQ(assembler.detail().where, "cuda/bad_instruction.cu");
  EXPECT_TRUE(contains(assembler.detail().found, "no_such_instruction")) << assembler.what();
  EXPECT_TRUE(files_below(folder_).empty()) << "nothing is kept of it";
}

TEST_F(CompilerTest, AnUnknownTargetOrOptionIsNoBug) {
  need_nvrtc();
  Arch unknown = *find_arch("sm_90a");
  unknown.name = "sm_77";
  Request r = request("cuda/scale.cu");
  r.arch = &unknown;
  const Error error = error_of([&] { compiler().compile(r); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_TRUE(contains(error.what(), "for sm_77")) << error.what();
  r = request("cuda/scale.cu");
  r.options = {"--no-such-option"};
  EXPECT_TRUE(contains(error_of([&] { compiler().compile(r); }).what(), "--no-such-option"));
}

TEST_F(CompilerTest, WithoutNvrtcTheCacheServesAndTheRestSaysWhy) {
  const Error error = error_of([&] { compiler_without_nvrtc().compile(request("cuda/scale.cu")); });
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_EQ(error.detail().where, "cuda.scale for sm_90a");
  EXPECT_TRUE(contains(error.what(), "NVRTC is neither on the loader's path nor in a Python"));
  EXPECT_TRUE(contains(error.what(), (folder_ / "cache").string())) << error.what();
  EXPECT_TRUE(contains(error.what(), "pip install"));

  need_nvrtc();
  const Compiled compiled = compiler().compile(request("cuda/scale.cu"));
  const Compiled cached = compiler_without_nvrtc().compile(request("cuda/scale.cu"));
  EXPECT_TRUE(cached.from_cache);
  EXPECT_EQ(cached.cubin, compiled.cubin);
}

TEST_F(CompilerTest, ATruncatedCubinIsCompiledAgain) {
  need_nvrtc();
  const Request r = request("cuda/scale.cu");
  const Compiled first = compiler().compile(r);
  fs::resize_file(entry_of(r) / "kernel.cubin", first.cubin.size() / 2);
  const Compiled second = compiler().compile(r);
  EXPECT_FALSE(second.from_cache);
  EXPECT_EQ(second.cubin, first.cubin);
  EXPECT_EQ(num_warnings("damaged"), 1);
  EXPECT_TRUE(compiler().compile(r).from_cache);
}

TEST_F(CompilerTest, WorksWithoutACacheFolder) {
  need_nvrtc();
  const Compiler none({.nvrtc = test_nvrtc(), .cache_folder = {}});
  EXPECT_FALSE(none.compile(request("cuda/scale.cu")).from_cache);
  EXPECT_FALSE(none.compile(request("cuda/scale.cu")).from_cache);
  EXPECT_EQ(num_warnings("no folder for the kernel cache"), 1);
}

TEST_F(CompilerTest, TwoProcessesMayCompileTheSame) {
  need_nvrtc();
  std::vector<pid_t> children;
  for (int i = 0; i < 2; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool ok = false;
      try {
        ok = !compiler().compile(request("cuda/spill.cu")).cubin.empty() && warnings_.empty();
      } catch (...) {
      }
      ::_exit(ok ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  EXPECT_TRUE(compiler_without_nvrtc().compile(request("cuda/spill.cu")).from_cache);
  EXPECT_EQ(files_below(folder_).size(), 4u) << "one entry and nothing left over";
}

TEST_F(CompilerTest, ManyAreCompiledSideBySideAndEachOnce) {
  need_nvrtc();
  std::vector<Request> requests;
  for (const char* arch : {"sm_80", "sm_90a", "sm_120a"})
    for (const char* path : {"cuda/scale.cu", "cuda/bad.cu", "cuda/scale.cu", "cuda/no_such.cu"})
      requests.push_back(request(path, arch));
  std::vector<size_t> done;
  int num_failed = 0;
  const auto outcomes =
      compiler().compile_all(requests, {.num_threads = 3, .memory_bytes = 0}, [&](const Progress& p) {
        EXPECT_EQ(p.num_total, 9u);
        done.push_back(p.num_done);
        num_failed += p.outcome.error.has_value();
      });
  EXPECT_EQ(done, (std::vector<size_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(num_failed, 6);
  ASSERT_EQ(outcomes.size(), requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    ASSERT_EQ(outcomes[i].compiled.has_value(), i % 2 == 0) << i;
    ASSERT_EQ(outcomes[i].error.has_value(), i % 2 == 1) << i;
    if (i % 2 == 0) {
      EXPECT_EQ(outcomes[i].compiled->key, key_of(requests[i]));
    }
  }
  EXPECT_EQ(outcomes[1].error->detail().where, "cuda/bad.cu:3");
  // A warm start compiles nothing.
  for (const Outcome& outcome : compiler().compile_all(requests))
    if (outcome.compiled) {
      EXPECT_TRUE(outcome.compiled->from_cache);
    }
  EXPECT_TRUE(compiler().compile_all({}).empty());
}

TEST_F(CompilerTest, WhatProgressThrowsStopsTheRest) {
  need_nvrtc();
  std::vector<Request> requests;
  for (int i = 0; i < 20; ++i) {
    requests.push_back(request("cuda/scale.cu"));
    requests.back().defines = {{"FACTOR", std::to_string(i)}};
  }
  int num_calls = 0;
  EXPECT_THROW(compiler().compile_all(requests, {.num_threads = 2, .memory_bytes = 0},
                                      [&](const Progress&) {
                                        ++num_calls;
                                        throw std::runtime_error("interrupted");
                                      }),
               std::runtime_error);
  EXPECT_EQ(num_calls, 1);
  EXPECT_LT(files_below(folder_).size(), 20u * 5);
}

TEST(CompileThreads, AreBoundByRequestsCoresAndMemory) {
  EXPECT_EQ(num_compile_threads(100, {.num_threads = 8, .memory_bytes = uint64_t{64} << 30}), 8);
  EXPECT_EQ(num_compile_threads(3, {.num_threads = 8, .memory_bytes = uint64_t{64} << 30}), 3);
  EXPECT_EQ(num_compile_threads(100, {.num_threads = 8, .memory_bytes = uint64_t{4} << 30}), 4);
  EXPECT_EQ(num_compile_threads(100, {.num_threads = 8, .memory_bytes = 1}), 1);
  EXPECT_EQ(num_compile_threads(0, {}), 1);
  EXPECT_GE(num_compile_threads(100, {}), 1);
}

}  // namespace
}  // namespace sinter::jit
