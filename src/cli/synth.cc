#include "workbench/synth.h"

#include <nlohmann/json.hpp>

#include "cli/model_option.h"
#include "cli/table.h"
#include "cli/verb.h"

namespace sinter::cli {

std::function<int(Console&)> define_synth(CLI::App& app) {
  struct Options {
    std::string config, out, store;
    uint64_t seed = 0;
    int64_t num_layers = 0;
  };
  const auto options = std::make_shared<Options>();
  app.add_option("CONFIG", options->config, "A folder with config.json")->required();
  app.add_option("--out,OUT", options->out, "New or empty folder for the checkpoint")->required();
  add_seed(app, options->seed, "Seed of the weights");
  app.add_option("--layers", options->num_layers, "Only the first N layers; 0: all")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  add_store(app, options->store);
  return [options](Console& console) {
    workbench::SynthOptions synth_options{.out = options->out,
                                          .seed = options->seed,
                                          .store = workbench::parse_store(options->store),
                                          .num_layers = options->num_layers,
                                          .progress = {}};
    const workbench::ModelFolder folder = workbench::open_model_folder(options->config);
    Progress progress(console, "writing");
    synth_options.progress = progress.callback();
    const workbench::SynthResult result = workbench::synthesize(folder, synth_options);
    if (console.json) {
      console.emit({{"out", options->out},
                    {"num_parameters", result.num_parameters},
                    {"num_tensors", result.num_tensors},
                    {"num_shards", result.num_shards},
                    {"bytes", result.bytes}});
    } else {
      console.print(fmt::format("{}: {} parameters in {} tensors, {}, {} file{}\n", options->out,
                                format_count(static_cast<double>(result.num_parameters)), result.num_tensors,
                                format_bytes(static_cast<double>(result.bytes)), result.num_shards,
                                result.num_shards == 1 ? "" : "s"));
    }
    return kOk;
  };
}

}  // namespace sinter::cli
