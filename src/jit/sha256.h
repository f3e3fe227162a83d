// SHA-256 (FIPS 180-4): keys and checksums of the cache, which `sha256sum` can check.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sinter::jit {

class Sha256 {
 public:
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
  // A number and then the text: two lists of texts never give the same bytes by accident.
  void update_sized(std::string_view text);
  // 64 lower-case hexadecimal digits. The last call on this object.
  std::string hex();

 private:
  void add_block(const std::byte* block);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> pending_{};
  uint64_t num_bytes_ = 0;
};

std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace sinter::jit
