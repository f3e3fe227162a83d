#include "workbench/compile.h"

#include <nlohmann/json.hpp>

#include "cli/model_option.h"
#include "cli/verb.h"
#include "workbench/device_choice.h"

namespace sinter::cli {

std::function<int(Console&)> define_compile(CLI::App& app) {
  struct Options {
    std::string model, arch, store;
    int64_t chunk = 512, context = 4096;
    int num_threads = 0;
  };
  const auto options = std::make_shared<Options>();
  add_model(app, options->model);
  app.add_option("--arch", options->arch,
                 "sm_90a, sm_120a, ..., or a device that has it: h200, rtx-5090, ...")
      ->required();
  app.add_option("--chunk", options->chunk, "Tokens of a step, at most")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--context", options->context, "Tokens of context, at most")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--threads", options->num_threads, "Compiles side by side; 0: one per core")
      ->check(CLI::Range(0, 4096));
  add_store(app, options->store);
  return [options](Console& console) {
    const Arch& arch = workbench::find_target(options->arch);
    const workbench::StoreMap store = workbench::parse_store(options->store);
    const workbench::ModelFolder folder = workbench::open_model_folder(options->model);
    Progress progress(console, "compiling");
    const workbench::CompileResult result =
        workbench::compile_model(folder, workbench::take_inventory(folder, store),
                                 {.arch = &arch,
                                  .chunk = options->chunk,
                                  .context = options->context,
                                  .num_threads = options->num_threads,
                                  .progress = progress.callback()});
    progress.clear();
    if (console.json) {
      console.emit({{"arch", arch.name},
                    {"num_compiled", result.num_compiled},
                    {"num_cached", result.num_cached},
                    {"seconds", result.seconds},
                    {"cache", result.cache_folder}});
    } else {
      console.print(fmt::format(
          "{}: {} compiled, {} in the cache before, {:.1f} s\n{}\n", arch.name, result.num_compiled,
          result.num_cached, result.seconds,
          result.cache_folder.empty() ? "no cache folder: nothing is kept" : result.cache_folder));
    }
    return kOk;
  };
}

}  // namespace sinter::cli
