// Options that several verbs share.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>

namespace sinter::cli {

inline void add_model(CLI::App& app, std::string& model) {
  app.add_option(
         "MODEL", model,
         "A folder in the Hugging Face layout, or a shipped model: demo, or a\nconfiguration such as glm-5")
      ->required();
}

// The parser of numbers would take -1 and 2^64 for large ones.
inline std::string check_seed(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return is_whole ? std::string() : "expected an integer from 0 to 2^64 - 1, found '" + text + "'";
}

inline void add_seed(CLI::App& app, uint64_t& seed, const std::string& help) {
  app.add_option("--seed", seed, help)->capture_default_str()->check(check_seed);
}

inline CLI::Option* add_store(CLI::App& app, std::string& store) {
  return app
      .add_option(
          "--store", store,
          "What is stored how, as PART=FORMAT,...: routed, shared, dense, attention, indexer, router, head,\n"
          "embedding or all; bf16, f16, f32, fp8, fp8_block, nvfp4 or mxfp4")
      ->check([](const std::string& text) {
        return text.empty() ? std::string("expected PART=FORMAT, found nothing") : std::string();
      });
}

}  // namespace sinter::cli
