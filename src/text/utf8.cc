#include "text/utf8.h"

#include <cstring>

namespace sinter::text {
namespace {

// The length of the run of ASCII at the start.
size_t ascii_prefix(std::string_view bytes) {
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    if ((word & 0x8080808080808080u) != 0) break;
  }
  while (i < bytes.size() && static_cast<unsigned char>(bytes[i]) < 0x80) ++i;
  return i;
}

}  // namespace

Utf8Step utf8_step(std::string_view bytes) {
  using Kind = Utf8Step::Kind;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {Kind::kCharacter, 1, lead};
  if (lead < 0xC2 || lead > 0xF4) return {Kind::kInvalid, 1, 0};
  const size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // Only the second byte's range depends on the first.
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  uint32_t code_point = lead & (0xFFu >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if (i == bytes.size()) return {Kind::kPartial, i, 0};
    if (byte(i) < low || byte(i) > high) return {Kind::kInvalid, i, 0};
    code_point = code_point << 6 | (byte(i) & 0x3Fu);
    low = 0x80;
    high = 0xBF;
  }
  return {Kind::kCharacter, size, code_point};
}

uint32_t next_code_point(std::string_view valid, size_t& position) {
  const auto byte = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<unsigned char>(valid[position + i]));
  };
  const uint32_t lead = byte(0);
  if (lead < 0x80) {
    position += 1;
    return lead;
  }
  uint32_t code_point;
  if (lead < 0xE0) {
    code_point = (lead & 0x1F) << 6 | (byte(1) & 0x3F);
    position += 2;
  } else if (lead < 0xF0) {
    code_point = (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    position += 3;
  } else {
    code_point = (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
    position += 4;
  }
  return code_point;
}

void append_utf8(std::string& text, uint32_t code_point) {
  const auto push = [&](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    push(code_point);
  } else if (code_point < 0x800) {
    push(0xC0 | code_point >> 6);
    push(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    push(0xE0 | code_point >> 12);
    push(0x80 | (code_point >> 6 & 0x3F));
    push(0x80 | (code_point & 0x3F));
  } else {
    push(0xF0 | code_point >> 18);
    push(0x80 | (code_point >> 12 & 0x3F));
    push(0x80 | (code_point >> 6 & 0x3F));
    push(0x80 | (code_point & 0x3F));
  }
}

bool is_utf8(std::string_view bytes) {
  for (;;) {
    bytes.remove_prefix(ascii_prefix(bytes));
    if (bytes.empty()) return true;
    const Utf8Step step = utf8_step(bytes);
    if (step.kind != Utf8Step::Kind::kCharacter) return false;
    bytes.remove_prefix(step.size);
  }
}

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Step step = utf8_step(bytes);
    if (step.kind == Utf8Step::Kind::kCharacter)
      text.append(bytes.substr(0, step.size));
    else
      append_utf8(text, 0xFFFD);
    bytes.remove_prefix(step.size);
  }
  return text;
}

}  // namespace sinter::text
