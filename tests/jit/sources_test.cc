#include "jit/sources.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file_map.h"

namespace sinter::jit {
namespace {
namespace fs = std::filesystem;

TEST(EmbeddedSources, AreTheFilesOfTheTree) {
  const fs::path root = fs::path(SINTER_SOURCE_DIR) / "src/kernels";
  size_t num_files = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    const fs::path path = entry.path().lexically_relative(root);
    const bool is_header = path.extension() == ".h" && *path.begin() == "gpu";
    if (!entry.is_regular_file() || (path.extension() != ".cu" && !is_header)) continue;
    ++num_files;
    EXPECT_EQ(embedded_source(path.string()), read_text_file(entry.path())) << path;
  }
  EXPECT_EQ(embedded_sources().size(), num_files);
}

TEST(EmbeddedSources, IncludeOnlyWhatIsEmbedded) {
  for (const SourceFile& file : embedded_sources())
    EXPECT_NO_THROW(with_includes(embedded_sources(), file.path)) << file.path;
}

TEST(EmbeddedSources, RefuseUnknownPaths) { EXPECT_THROW(embedded_source("cuda/no_such.cu"), Error); }

constexpr SourceFile kFiles[] = {
    {"cuda/a.cu", "#include \"gpu/c.h\"\n  #  include \"gpu/b.h\"  // why\n// #include \"gpu/no.h\"\nint a;"},
    {"cuda/angle.cu", "int a;\n#include <cuda_fp16.h>\n"},
    {"cuda/absent.cu", "\n\n#include \"gpu/absent.h\""},
    {"cuda/indirect.cu", "#include \"gpu/bad.h\"\n"},
    {"cuda/macro.cu", "#include HEADER\n"},
    {"gpu/a.h", "#include \"gpu/b.h\"\n"},
    {"gpu/b.h", "#include \"gpu/c.h\"\n#include \"gpu/b.h\"\n"},
    {"gpu/c.h", ""},
    {"gpu/bad.h", "#include \"cuda/a.cu\"\n"},
};

TEST(WithIncludes, HasEachFileOnceAndTheProgramFirst) {
  std::vector<std::string_view> paths;
  for (const SourceFile& file : with_includes(kFiles, "cuda/a.cu")) paths.push_back(file.path);
  EXPECT_EQ(paths, (std::vector<std::string_view>{"cuda/a.cu", "gpu/c.h", "gpu/b.h"}));
}

TEST(WithIncludes, NamesTheLineOfAnIncludeThatIsNotAllowed) {
  const auto where = [](std::string_view path) {
    try {
      with_includes(kFiles, path);
    } catch (const Error& error) {
      return error.detail().where;
    }
    return std::string("no error");
  };
  EXPECT_EQ(where("cuda/angle.cu"), "cuda/angle.cu:2");
  EXPECT_EQ(where("cuda/absent.cu"), "cuda/absent.cu:3");
  EXPECT_EQ(where("cuda/indirect.cu"), "gpu/bad.h:1");
  EXPECT_EQ(where("cuda/macro.cu"), "cuda/macro.cu:1");
  EXPECT_EQ(where("cuda/no_such.cu"), "device sources");
}

}  // namespace
}  // namespace sinter::jit
