#include "base/error.h"

#include <gtest/gtest.h>

namespace sinter {
namespace {

TEST(Error, IsOneLineOfWhereExpectedFoundAndMend) {
  const Error full(
      ErrorKind::kFormat,
      {.where = "a.json: key 'x'", .expected = "a number", .found = "\"two\nlines\"", .mend = "fix it"});
  EXPECT_STREQ(full.what(), "a.json: key 'x': expected a number, found \"two lines\" (fix it)");
  EXPECT_EQ(full.kind(), ErrorKind::kFormat);
  const Error bare(ErrorKind::kFile,
                   {.where = "a.json", .expected = {}, .found = "No such file", .mend = {}});
  EXPECT_STREQ(bare.what(), "a.json: No such file");
}

TEST(Error, CutsWhatWasFoundBetweenCharacters) {
  std::string found;
  while (found.size() < 5000) found += "\xe2\x82\xac";  // euro signs
  const Error error(ErrorKind::kFormat, {.where = "a", .expected = "b", .found = found, .mend = "c"});
  const std::string text = error.what();
  EXPECT_LT(text.size(), 1300u);
  EXPECT_NE(text.find("\xac... (c)"), std::string::npos);
}

TEST(Error, CheckNamesPlaceConditionAndMessage) {
  const int found = 3;
  try {
    SINTER_CHECK(found == 4, "found {}", found);
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
    const std::string text = error.what();
    for (const char* part : {"error_test.cc", "found == 4", "found 3"})
      EXPECT_NE(text.find(part), std::string::npos);
  }
}

}  // namespace
}  // namespace sinter
