// Options of the verbs that load a model.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "cli/console.h"
#include "workbench/session.h"

namespace sinter::cli {

struct RunOptions {
  std::string device = "auto";
  std::optional<uint64_t> random_weights;  // the seed
  int num_threads = 0;
  bool reference = false, no_pack = false;
  std::string moe_backend, linear_backend, attention_backend;

  void define(CLI::App& app);
  // Throws Error(kUsage) for what is wrong in them, before anything is read.
  void check() const;
  // Throws unless the folder has weights or gets random ones.
  void check_weights(const workbench::ModelFolder& folder) const;
  // Shows progress. `chunk`: tokens of a step; `context`: tokens whose cache has to fit beside the weights.
  workbench::Session load(workbench::ModelFolder folder, const Console& console, int64_t chunk,
                          int64_t context) const;
};

}  // namespace sinter::cli
