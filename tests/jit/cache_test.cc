#include "jit/cache.h"

#include <sys/wait.h>

#include <cstdio>

#include "base/file_map.h"
#include "base/json.h"
#include "fixture.h"
#include "jit/sha256.h"

namespace sinter::jit {
namespace {

class CacheTest : public JitTest {
 protected:
  static constexpr Cache::Id kId{"sm_90a", "cuda.scale", "0123456789abcdef"};

  // With `fill` as the cubin's bytes, so that entries can be told apart.
  static Compiled compiled(char fill = 'x') {
    return {.name = "cuda.scale",
            .key = std::string(kId.key),
            .cubin = std::vector<std::byte>(100'000, static_cast<std::byte>(fill)),
            .log = "the \"compiler's\" text\n",
            .kernels = {{"scale", 32, 256, 8, 4, 12}},
            .from_cache = false};
  }
  void store(const Cache& cache, char fill = 'x', std::string_view version = "13.0") const {
    cache.store(version, kId, compiled(fill), with_includes(kSources, "cuda/scale.cu"), "nvcc\n");
  }
  fs::path entry(std::string_view version = "13.0") const {
    return root_ / fmt::format("nvrtc-{}/sm_90a/cuda.scale-0123456789abcdef", version);
  }
  void overwrite(const std::string& file, const std::string& content) const {
    std::ofstream(entry() / file) << content;
  }
  // Makes the folder one that this process can read and not write. root may write everywhere, so it becomes
  // another user until the end of the object.
  class ReadOnly {
   public:
    explicit ReadOnly(const fs::path& folder) : folder_(folder) {
      fs::permissions(folder, static_cast<fs::perms>(0555));
      if (::geteuid() == 0) {
        EXPECT_EQ(::seteuid(65534), 0);
      }
    }
    ~ReadOnly() {
      if (::getuid() == 0) {
        EXPECT_EQ(::seteuid(0), 0);
      }
      fs::permissions(folder_, fs::perms::owner_all);
    }

   private:
    fs::path folder_;
  };

  const fs::path root_ = folder_ / "cache";
};

TEST_F(CacheTest, GivesBackWhatItKeeps) {
  const Cache cache(root_);
  EXPECT_FALSE(cache.find("13.0", kId));
  store(cache);
  const auto found = Cache(root_).find("13.0", kId);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cubin, compiled().cubin);
  EXPECT_EQ(found->log, compiled().log);
  EXPECT_EQ(found->kernels, compiled().kernels);
  EXPECT_TRUE(found->from_cache);
  EXPECT_FALSE(cache.find("13.0", {"sm_90a", "cuda.scale", "another"}));
  EXPECT_FALSE(cache.find("13.0", {"sm_80", "cuda.scale", kId.key}));
  EXPECT_TRUE(warnings_.empty()) << warnings_.front();
}

TEST_F(CacheTest, CanBeReadByAPerson) {
  store(Cache(root_));
  EXPECT_EQ(files_below(root_),
            (std::vector<std::string>{"nvrtc-13.0/sm_90a/cuda.scale-0123456789abcdef/command.txt",
                                      "nvrtc-13.0/sm_90a/cuda.scale-0123456789abcdef/gpu/times.h",
                                      "nvrtc-13.0/sm_90a/cuda.scale-0123456789abcdef/kernel.cubin",
                                      "nvrtc-13.0/sm_90a/cuda.scale-0123456789abcdef/resources.json",
                                      "nvrtc-13.0/sm_90a/cuda.scale-0123456789abcdef/source.cu"}));
  EXPECT_EQ(read_text_file(entry() / "source.cu"), kSources[0].text);
  EXPECT_EQ(read_text_file(entry() / "command.txt"), "nvcc\n");
  const Json report = parse_json_file(entry() / "resources.json");
  EXPECT_EQ(report["cubin_bytes"], 100'000);
  EXPECT_EQ(report["cubin_sha256"], sha256_hex(compiled().cubin));
  EXPECT_EQ(report["kernels"][0]["registers"], 32);
  EXPECT_EQ(report["kernels"][0]["spill_load_bytes"], 12);
}

TEST_F(CacheTest, DamageIsSaidOnceCountsAsAbsentAndIsReplaced) {
  const Cache cache(root_);
  const std::pair<std::string, std::string> damages[] = {
      {"kernel.cubin", std::string(99'999, 'x')},
      {"kernel.cubin", std::string(99'999, 'x') + "y"},
      {"kernel.cubin", ""},
      {"resources.json", ""},
      {"resources.json", "{\"cubin_bytes\": 100000}"},
      {"resources.json", R"({"cubin_bytes":100000,"cubin_sha256":"x","kernels":[],"log":""})"},
  };
  for (const auto& [file, content] : damages) {
    store(cache);
    overwrite(file, content);
    warnings_.clear();
    EXPECT_FALSE(cache.find("13.0", kId)) << file << ": " << content.size();
    EXPECT_FALSE(cache.find("13.0", kId));
    EXPECT_LE(num_warnings("damaged"), 1);
    store(cache, 'z');
    const auto found = cache.find("13.0", kId);
    ASSERT_TRUE(found) << file;
    EXPECT_EQ(found->cubin, compiled('z').cubin) << "replaced";
    fs::remove_all(root_);
  }
  store(cache);
  fs::remove(entry() / "kernel.cubin");
  warnings_.clear();
  EXPECT_FALSE(cache.find("13.0", kId));
  EXPECT_FALSE(cache.find("13.0", kId));
  ASSERT_EQ(num_warnings("damaged"), 1);
  EXPECT_TRUE(contains(warnings_[0], (entry() / "kernel.cubin").string()));
}

TEST_F(CacheTest, AWholeEntryIsNotReplaced) {
  const Cache cache(root_);
  store(cache, 'x');
  store(cache, 'z');
  EXPECT_EQ(cache.find("13.0", kId)->cubin, compiled('x').cubin);
  EXPECT_EQ(files_below(root_).size(), 5u) << "nothing is left over";
}

TEST_F(CacheTest, WithoutACompilerTheNewestThatHasTheEntryCounts) {
  const Cache cache(root_);
  EXPECT_FALSE(cache.find("", kId));
  for (const auto& [version, fill] : {std::pair{"9.2", 'a'}, {"12.9", 'b'}, {"12.10", 'c'}})
    store(cache, fill, version);
  fs::create_directories(root_ / "nvrtc-13.1/sm_90a");
  fs::create_directories(root_ / "nvrtc-x/sm_90a");
  EXPECT_EQ(cache.find("", kId)->cubin, compiled('c').cubin);
  std::ofstream(entry("12.10") / "kernel.cubin") << "damaged";
  EXPECT_EQ(cache.find("", kId)->cubin, compiled('b').cubin) << "the next that is whole";
  EXPECT_EQ(cache.find("9.2", kId)->cubin, compiled('a').cubin);
}

TEST_F(CacheTest, AReadOnlyFolderIsReadAndSaidOnce) {
  store(Cache(root_));
  const fs::path arch_folder = entry().parent_path();
  const ReadOnly read_only(arch_folder);
  const Cache cache(root_);
  EXPECT_TRUE(cache.find("13.0", kId));
  EXPECT_TRUE(warnings_.empty());
  for (const char* key : {"one", "two"})
    cache.store("13.0", {"sm_90a", "cuda.scale", key}, compiled(), with_includes(kSources, "cuda/scale.cu"),
                "");
  EXPECT_FALSE(cache.find("13.0", {"sm_90a", "cuda.scale", "one"}));
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_TRUE(contains(warnings_[0], "cannot be written")) << warnings_[0];
  EXPECT_TRUE(contains(warnings_[0], "Permission denied")) << warnings_[0];
  EXPECT_TRUE(contains(warnings_[0], "SINTER_CACHE"));
}

TEST_F(CacheTest, AFolderThatCannotBeIsSaidOnce) {
  std::ofstream(folder_ / "file") << "";
  const Cache cache(folder_ / "file" / "cache");
  store(cache);
  store(cache);
  EXPECT_FALSE(cache.find("13.0", kId));
  EXPECT_EQ(num_warnings("cannot be written"), 1);
  store(Cache(""));
  EXPECT_FALSE(Cache("").find("13.0", kId));
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(CacheTest, WhatDeadProcessesLeftIsRemovedAfterADay) {
  const fs::path old = root_ / "nvrtc-12.0/sm_80/.unfinished-old",
                 young = root_ / "nvrtc-13.0/sm_90a/.unfinished-young";
  for (const fs::path& folder : {old, young}) fs::create_directories(folder / "gpu");
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(25));
  store(Cache(root_));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young)) << "another process may be writing it";
  EXPECT_TRUE(fs::exists(entry()));
}

// Many processes fill, damage and read one entry: each read gives nothing or one of the contents, whole.
TEST_F(CacheTest, ProcessesMayRace) {
  std::vector<pid_t> children;
  for (const char fill : {'a', 'b', 'c', 'd'}) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool ok = true;
      const Cache cache(root_);
      for (int round = 0; round < 60 && ok; ++round) {
        store(cache, fill);
        if (const auto found = cache.find("13.0", kId))
          ok = std::ranges::all_of(found->cubin, [&](std::byte b) { return b == found->cubin[0]; });
        if (fill == 'a' && round % 3 == 0) {
          std::error_code ignored;
          fs::remove(entry() / "kernel.cubin", ignored);
        }
      }
      for (const std::string& warning : warnings_)
        if (contains(warning, "cannot be written")) {
          std::fprintf(stderr, "%s\n", warning.c_str());
          ok = false;
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
  store(Cache(root_));
  EXPECT_TRUE(Cache(root_).find("13.0", kId));
  EXPECT_EQ(files_below(root_).size(), 5u) << "nothing is left over";
}

}  // namespace
}  // namespace sinter::jit
