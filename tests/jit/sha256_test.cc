#include "jit/sha256.h"

#include <gtest/gtest.h>

namespace sinter::jit {
namespace {

std::string hash_of(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))); }

// Examples of FIPS 180-4 and the NIST's long one.
TEST(Sha256, GivesThePublishedValues) {
  EXPECT_EQ(hash_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hash_of(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnThePieces) {
  const std::string text(200, 'x');
  for (size_t piece = 1; piece <= 130; ++piece) {
    Sha256 hash;
    for (size_t begin = 0; begin < text.size(); begin += piece)
      hash.update(std::string_view(text).substr(begin, piece));
    ASSERT_EQ(hash.hex(), hash_of(text)) << piece;
  }
}

TEST(Sha256, SizedTextsKeepTheirBorders) {
  Sha256 a, b;
  for (const char* text : {"ab", "c"}) a.update_sized(text);
  for (const char* text : {"a", "bc"}) b.update_sized(text);
  EXPECT_NE(a.hex(), b.hex());
}

}  // namespace
}  // namespace sinter::jit
