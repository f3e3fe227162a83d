#include "workbench/quantize.h"

#include <nlohmann/json.hpp>

#include "cli/model_option.h"
#include "cli/table.h"
#include "cli/verb.h"

namespace sinter::cli {

std::function<int(Console&)> define_quantize(CLI::App& app) {
  struct Options {
    std::string model, out, store = "routed=nvfp4";
    int num_threads = 0;
  };
  const auto options = std::make_shared<Options>();
  add_model(app, options->model);
  app.add_option("--out,OUT", options->out, "New or empty folder for the checkpoint")->required();
  add_store(app, options->store);
  app.get_option("--store")->capture_default_str();
  app.add_option("--threads", options->num_threads, "Threads; 0: one per core")->check(CLI::Range(0, 4096));
  return [options](Console& console) {
    workbench::QuantizeOptions quantize_options{
        .out = options->out, .store = workbench::parse_store(options->store), .progress = {}};
    const workbench::ModelFolder folder = workbench::open_model_folder(options->model);
    ThreadPool pool(options->num_threads);
    Progress progress(console, "quantising");
    quantize_options.progress = progress.callback();
    const workbench::QuantizeResult result = workbench::quantize(folder, pool, quantize_options);
    if (console.json) {
      console.emit({{"out", options->out},
                    {"num_quantized", result.num_quantized},
                    {"num_copied", result.num_copied},
                    {"bytes_before", result.bytes_before},
                    {"bytes_after", result.bytes_after},
                    {"relative_error", result.relative_error},
                    {"copied_files", result.copied_files}});
    } else {
      console.print(fmt::format(
          "{}: {} matrices quantised (relative error {:.4f}), {} tensors as they were; {} -> {}\n",
          options->out, result.num_quantized, result.relative_error, result.num_copied,
          format_bytes(static_cast<double>(result.bytes_before)),
          format_bytes(static_cast<double>(result.bytes_after))));
    }
    return kOk;
  };
}

}  // namespace sinter::cli
