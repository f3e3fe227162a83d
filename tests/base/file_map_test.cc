#include "base/file_map.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"

namespace sinter {
namespace {

class FileMapTest : public testing::Test {
 protected:
  FileMapTest() { std::filesystem::create_directories(folder_); }
  ~FileMapTest() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path write(const std::string& content) const {
    std::ofstream(folder_ / "file") << content;
    return folder_ / "file";
  }
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("sinter_file_map_{}", ::getpid());
};

TEST_F(FileMapTest, MapsWholeFiles) {
  FileMap map(write("some bytes"));
  EXPECT_EQ(map.bytes().size(), 10u);
  EXPECT_EQ(map.bytes()[5], std::byte{'b'});
  const FileMap moved = std::move(map);
  EXPECT_EQ(moved.bytes()[5], std::byte{'b'});
  EXPECT_EQ(read_text_file(folder_ / "file"), "some bytes");
  EXPECT_TRUE(FileMap(write("")).bytes().empty());
}

TEST_F(FileMapTest, WhatCannotBeMappedIsAnErrorWithThePath) {
  const auto kind_of = [](const std::filesystem::path& path, size_t max_bytes = 1000) {
    try {
      read_text_file(path, max_bytes);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos);
      return error.kind();
    }
    return ErrorKind::kInternal;
  };
  EXPECT_EQ(kind_of(folder_ / "missing"), ErrorKind::kFile);
  EXPECT_EQ(kind_of(folder_), ErrorKind::kFile) << "a folder";
  EXPECT_EQ(kind_of("/dev/zero"), ErrorKind::kFile) << "not a regular file";
  EXPECT_EQ(kind_of(write("some bytes"), 9), ErrorKind::kLimit);
}

}  // namespace
}  // namespace sinter
