// Options that several verbs share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace sinter::cli {

inline void add_model(CLI::App& app, std::string& model) {
  app.add_option(
         "MODEL", model,
         "A folder in the Hugging Face layout, or a shipped model: demo, or a\nconfiguration such as glm-5")
      ->required();
}

inline void add_store(CLI::App& app, std::string& store) {
  app.add_option(
      "--store", store,
      "What is stored how, as PART=FORMAT,...: routed, shared, dense, attention, indexer, router, head,\n"
      "embedding or all; bf16, f16, f32, fp8, fp8_block, nvfp4 or mxfp4");
}

}  // namespace sinter::cli
