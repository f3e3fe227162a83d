// A verb: one file, one row in verbs.cc.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>
#include <string_view>

#include "cli/console.h"

namespace sinter::cli {

inline constexpr int kOk = 0, kFailed = 1, kUsage = 2;

struct Verb {
  std::string_view name;
  std::string_view summary;
  // Adds the options; what it returns runs after they are parsed and gives the exit code. Errors are
  // thrown. --json and --quiet are there already.
  std::function<int(Console&)> (*define)(CLI::App& app);
};

std::span<const Verb> verbs();

std::function<int(Console&)> define_compile(CLI::App& app);
std::function<int(Console&)> define_doctor(CLI::App& app);
std::function<int(Console&)> define_generate(CLI::App& app);
std::function<int(Console&)> define_inspect(CLI::App& app);
std::function<int(Console&)> define_kernels(CLI::App& app);
std::function<int(Console&)> define_quantize(CLI::App& app);
std::function<int(Console&)> define_roofline(CLI::App& app);
std::function<int(Console&)> define_score(CLI::App& app);
std::function<int(Console&)> define_synth(CLI::App& app);

}  // namespace sinter::cli
