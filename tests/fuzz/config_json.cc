// config.json and the shard index of any content: parsed, or refused with sinter::Error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/config_json.h"
#include "checkpoint/shard_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sinter;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto run = [](auto action) {
    try {
      action();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInternal) throw;
    }
  };
  run([&] {
    const Json json = checkpoint::parse_config(text, "config.json");
    const JsonObject config(json, "config.json");
    config.get_ints("eos_token_id", 0, 1 << 20);
    config.get_strings("architectures");
    if (const auto quantization = config.find_object("quantization_config"))
      quantization->get_string_or("quant_algo", "");
  });
  run([&] { checkpoint::parse_shard_index(text, "index.json"); });
  return 0;
}
