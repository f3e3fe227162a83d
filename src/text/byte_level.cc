#include "text/byte_level.h"

#include <array>

#include "text/utf8.h"

namespace sinter::text {
namespace {

constexpr uint32_t kNumCharacters = 256 + 68;

constexpr bool is_printable(uint32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

struct Alphabet {
  std::array<uint16_t, 256> character{};
  std::array<int16_t, kNumCharacters> byte{};  // -1: not in the alphabet
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte.fill(-1);
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const uint32_t character = is_printable(byte) ? byte : next++;
    alphabet.character[byte] = static_cast<uint16_t>(character);
    alphabet.byte[character] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

uint32_t byte_level_character(unsigned char byte) { return kAlphabet.character[byte]; }

std::optional<std::string> byte_level_bytes(std::string_view token) {
  std::string bytes;
  for (size_t i = 0; i < token.size();) {
    const uint32_t character = next_code_point(token, i);
    if (character >= kNumCharacters || kAlphabet.byte[character] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kAlphabet.byte[character]));
  }
  return bytes;
}

}  // namespace sinter::text
