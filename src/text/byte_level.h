// The alphabet of byte-level BPE: each of the 256 bytes is written as one printable character, so that
// any byte sequence is a string. Bytes that are printable in Latin-1 stand for themselves, the other 68
// are U+0100, U+0101, ... in order: a space is U+0120.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sinter::text {

uint32_t byte_level_character(unsigned char byte);

// The bytes that `token` (valid UTF-8) stands for; nullopt when a character is outside the alphabet, as
// in most special tokens, which then stand for themselves.
std::optional<std::string> byte_level_bytes(std::string_view token);

}  // namespace sinter::text
