// Whole files of any content: parsed, or refused with sinter::Error.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "checkpoint/safetensors_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sinter;
  try {
    const auto header = checkpoint::parse_safetensors_header(std::as_bytes(std::span(data, size)), "fuzz");
    uint64_t position = 0;
    for (const checkpoint::TensorEntry& entry : header.tensors) {
      SINTER_CHECK(entry.begin == position && entry.end >= entry.begin, "'{}' at {}", entry.name,
                   entry.begin);
      position = entry.end;
    }
    SINTER_CHECK(header.data_begin + position == size, "{} of {} bytes", header.data_begin + position, size);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) throw;
  }
  return 0;
}
