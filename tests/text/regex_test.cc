#include "text/regex.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "text/normalizer.h"
#include "text/regex_translation.h"
#include "text/unicode_stand_in.h"

namespace sinter::text {
namespace {

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  std::vector<Span> spans;
  Regex(pattern, "test").find_all(text, spans);
  std::vector<std::string> found;
  for (const Span& span : spans) found.emplace_back(text.substr(span.begin, span.end - span.begin));
  return found;
}

using Found = std::vector<std::string>;

TEST(Regex, ReadsPatternsAsOnigurumaDoes) {
  EXPECT_EQ(matches(R"(\p{N}{1,3}+)", "123456"), (Found{"123456"}));
  EXPECT_EQ(matches("a{2}?", "aaa"), (Found{"aa", ""}));
  EXPECT_EQ(matches("a{,2}x", "aaax"), (Found{"aax"}));
  EXPECT_EQ(matches("x{y", "x{y"), (Found{"x{y"}));
  EXPECT_EQ(matches(R"(\h+)", "fF0g \t"), (Found{"fF0"}));
  EXPECT_EQ(matches(R"(\v)", "\n\v"), (Found{"\v"}));
  EXPECT_EQ(matches("a$", "a\nb"), (Found{"a"}));
  EXPECT_EQ(matches(R"(\s)", "\u180e\u3000"), (Found{"\u3000"}));
  EXPECT_EQ(matches("(?i:'s)", "'S'\u017f"), (Found{"'S", "'\u017f"}));
  EXPECT_EQ(matches(R"(\u0061\x{62}c)", "abc"), (Found{"abc"}));
  // U+3001 is of many scripts' extensions, but not Han.
  EXPECT_EQ(matches(R"(\p{Han}+)", "\u6f22\u3001"), (Found{"\u6f22"}));
}

TEST(Regex, KnowsCharactersYoungerThanPcre2) {
  EXPECT_EQ(matches(R"(\p{L}+)", "a\U00031350b"), (Found{"a\U00031350b"}));  // Unicode 15
  EXPECT_EQ(matches(R"(\p{N})", "\U00010D40"), (Found{"\U00010D40"}));       // Unicode 16
  EXPECT_EQ(matches(R"(\p{Han}+)", "\U0002EBF0"), (Found{"\U0002EBF0"}));    // Unicode 15.1
  EXPECT_EQ(stand_in('a'), uint32_t{'a'});
  EXPECT_EQ(stand_in(0x10FFFF), 0x10FFFFu);
}

TEST(Regex, FindsEmptyMatchesBetweenOthers) {
  EXPECT_EQ(matches("x*", "xxé"), (Found{"xx", ""}));
  EXPECT_EQ(matches("", "é"), (Found{"", ""}));
  EXPECT_EQ(matches("(?=b)", "abab"), (Found{"", ""}));
  EXPECT_EQ(matches("a", ""), Found{});
}

TEST(Regex, RefusesWhatWouldDiffer) {
  for (const char* pattern : {R"(\w)",
                              R"(\bx)",
                              R"([\w])",
                              R"((a)\1)",
                              "[a[bc]]",
                              "[[:alpha:]]",
                              "[a&&b]",
                              "[]a]",
                              "(?m:.)",
                              "(?x: a)",
                              "(?<n>a)",
                              "(?P<n>a)",
                              "(*ACCEPT)",
                              "a(?i)b|c",
                              "(?i:ss)",
                              "(?i:fi)",
                              R"((?i:\p{L}))",
                              "(?i:é)",
                              R"(\pL)",
                              R"(\Ka)",
                              R"(\Ga)",
                              R"(\R)",
                              R"(\X)",
                              R"(\x80)",
                              R"(\uD800)",
                              R"(\x{110000})",
                              "a{3,1}",
                              "a{1,99999}",
                              "*a",
                              "^*",
                              "(?=a)+",
                              "[a-\\d]",
                              "[z-a]",
                              "[a-c-e]",
                              "(a",
                              "a)",
                              "[a",
                              "\\",
                              R"(\Qa\E)",
                              R"(\p{})",
                              R"(\p{L)"}) {
    try {
      Regex regex(pattern, "here");
      ADD_FAILURE() << pattern;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUnsupported) << error.what();
      EXPECT_EQ(error.detail().where, "here");
    }
  }
  // Left to PCRE2's compiler.
  for (const char* pattern : {R"(\p{Nonsense})", "(?<=a+)b"})
    EXPECT_THROW(Regex(pattern, "here"), Error) << pattern;
  EXPECT_THROW(Regex(std::string(101, '(') + std::string(101, ')'), "here"), Error);
  EXPECT_THROW(Regex(std::string(100000, 'a'), "here"), Error);
}

TEST(Nfc, ComposesAsTheReferenceDoes) {
  EXPECT_EQ(nfc("e\u0301 \u212b \u0958"), "\u00e9 \u00c5 \u0915\u093c");
  EXPECT_EQ(nfc("\u1100\u1161\u11a8"), "\uac01");
  EXPECT_EQ(nfc("q\u0307\u0323"), "q\u0323\u0307");
  EXPECT_EQ(nfc("\U00011935\U00011930"), "\U00011935\U00011930");  // U+11938 since Unicode 13
  EXPECT_EQ(nfc("plain, Русский, 汉字"), "plain, Русский, 汉字");
}

}  // namespace
}  // namespace sinter::text
