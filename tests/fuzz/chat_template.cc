// Template text, rendered with a small chat. Anything but text or an Error is a finding, and so is a second
// of time: the limits are small enough that a sanitizer build ends well before.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "text/jinja/template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const sinter::Json kVariables = sinter::Json::parse(R"({
    "messages": [{"role": "user", "content": "h\u00e9 <b>"},
                 {"role": "assistant", "content": null, "tool_calls": [{"name": "f", "arguments": {"a": [1, 2.5, null]}}]},
                 {"role": "tool", "content": [{"type": "text", "text": " x\n y "}]}],
    "tools": [{"type": "function", "function": {"name": "f"}}],
    "add_generation_prompt": true, "bos_token": "<s>", "n": 7, "x": -2.5})");
  static constexpr sinter::text::jinja::Limits kLimits = {
      .max_steps = 100'000, .max_bytes = 1 << 22, .max_output_bytes = 1 << 20, .max_depth = 400};
  try {
    const sinter::text::jinja::Template parsed(std::string_view(reinterpret_cast<const char*>(data), size),
                                               "template");
    parsed.render(kVariables, kLimits, 0);
  } catch (const sinter::Error& error) {
    if (error.kind() == sinter::ErrorKind::kInternal) __builtin_trap();
  }
  return 0;
}
