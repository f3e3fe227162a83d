// tokenizer.json from anywhere: either one sinter::Error, or a tokenizer that encodes and decodes.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "text/incremental_decoder.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using sinter::text::Tokenizer;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  // What follows the first NUL is tokenizer_config.json.
  const size_t end = input.find('\0');
  const std::string_view config = end == input.npos ? std::string_view() : input.substr(end + 1);
  try {
    const Tokenizer tokenizer = Tokenizer::parse(input.substr(0, end), "tokenizer.json", config);
    for (const std::string_view text :
         {std::string_view("Hello, World! 123  \n\n\t x\xE2\x82\xAC\xF0\x9F\x98\x80\xFF aaaa'll"),
          input.substr(0, 256)}) {
      const auto ids = tokenizer.encode_prompt(text);
      tokenizer.decode(ids, true);
      sinter::text::IncrementalDecoder decoder(tokenizer);
      for (const int32_t id : ids) decoder.push(id);
      decoder.flush();
    }
  } catch (const sinter::Error&) {
  }
  return 0;
}
