// Options of the verbs that load a model.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/console.h"
#include "workbench/session.h"

namespace sinter::cli {

struct RunOptions {
  int num_threads = 0;
  bool reference = false, no_pack = false;
  std::string moe_backend, linear_backend, attention_backend;

  void define(CLI::App& app);
  // Shows progress.
  workbench::Session load(workbench::ModelFolder folder, const Console& console) const;
};

}  // namespace sinter::cli
