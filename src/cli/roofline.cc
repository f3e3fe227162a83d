#include "workbench/roofline.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/model_option.h"
#include "cli/table.h"
#include "cli/verb.h"
#include "workbench/machine.h"

namespace sinter::cli {
namespace {

using workbench::Roofline;
using workbench::RooflineOptions;

KnownDevice find_device(const std::string& name) {
  if (name == "cpu") return workbench::measured_cpu();
  if (const KnownDevice* device = find_known_device(name)) return *device;
  std::string names;
  for (const KnownDevice& device : known_devices()) names += fmt::format("{}, ", device.name);
  throw Error(
      ErrorKind::kUsage,
      {.where = "--device", .expected = names + "cpu", .found = fmt::format("'{}'", name), .mend = ""});
}

Json to_json(const Roofline& roofline, const workbench::Inventory& inventory,
             const RooflineOptions& options) {
  Json parts = Json::array();
  for (const workbench::RooflinePart& part : roofline.parts)
    parts.push_back({{"name", part.name},
                     {"bytes", part.bytes},
                     {"operations", part.operations},
                     {"time_us", part.time_us},
                     {"bound", part.is_bound_by_operations ? "operations" : "bytes"}});
  return {{"device", options.device.name},
          {"device_gb_per_s", options.device.read_gb_per_s},
          {"tp", options.tp},
          {"context", options.context},
          {"batch", options.batch},
          {"source", inventory.source},
          {"bytes", roofline.bytes},
          {"operations", roofline.operations},
          {"time_us", roofline.time_us},
          {"tokens_per_s", roofline.tokens_per_s},
          {"distinct_experts", roofline.distinct_experts},
          {"stored_bytes", roofline.stored_bytes},
          {"cache_bytes", roofline.cache_bytes},
          {"memory_bytes", roofline.memory_bytes},
          {"fits", roofline.fits()},
          {"parts", parts},
          {"replicated",
           {{"bytes_per_device", roofline.replicated.bytes_per_device},
            {"time_us", roofline.replicated.time_us},
            {"tokens_per_s", roofline.replicated.tokens_per_s}}}};
}

std::string to_text(const Roofline& roofline, const workbench::Inventory& inventory,
                    const RooflineOptions& options) {
  std::string text = fmt::format(
      "{} x {} at {:.0f} GB/s each; every part split evenly\n"
      "{} with {} tokens of context each{}; formats from {}\n\n",
      options.tp, options.device.full_name, options.device.read_gb_per_s,
      options.batch == 1 ? "1 sequence" : fmt::format("{} sequences", options.batch), options.context,
      options.context == 0 ? " (weights only)" : "", inventory.source);
  Table table({"part", ">bytes", ">operations", ">time", ">share", "bound by"});
  for (const workbench::RooflinePart& part : roofline.parts)
    table.add({part.name, format_bytes(part.bytes), format_count(part.operations), format_time(part.time_us),
               fmt::format("{:.1f} %", 100 * part.time_us / roofline.time_us),
               part.is_bound_by_operations ? "operations" : "bytes"});
  table.add_rule();
  table.add({"step", format_bytes(roofline.bytes), format_count(roofline.operations),
             format_time(roofline.time_us)});
  text += table.text();
  text += fmt::format(
      "\nat most {:.1f} tokens/s{}\n", roofline.tokens_per_s,
      options.batch > 1
          ? fmt::format(" in all, {:.1f} a sequence; {:.1f} distinct experts a layer",
                        roofline.tokens_per_s / static_cast<double>(options.batch), roofline.distinct_experts)
          : "");
  if (options.device.bf16_tflops == 0)
    text += "operations are not limited: the matrix rate of this device is unknown\n";
  if (options.tp > 1)
    text += fmt::format(
        "what if the narrow projections, indexer, router and latent cache are copied to every device "
        "instead:\n"
        "  {} per device, {}, at most {:.1f} tokens/s\n",
        format_bytes(roofline.replicated.bytes_per_device), format_time(roofline.replicated.time_us),
        roofline.replicated.tokens_per_s);
  text += fmt::format("memory: {} weights + {} cache of {}: {}\n", format_bytes(roofline.stored_bytes),
                      format_bytes(roofline.cache_bytes), format_bytes(roofline.memory_bytes),
                      roofline.fits() ? "fits" : "does not fit");
  return text;
}

}  // namespace

std::function<int(Console&)> define_roofline(CLI::App& app) {
  struct Options {
    std::string model, store, device;
    int64_t tp = 1, batch = 1;
    std::optional<int64_t> context;
  };
  const auto options = std::make_shared<Options>();
  add_model(app, options->model);
  std::string names;
  for (const KnownDevice& device : known_devices()) names += fmt::format("{}, ", device.name);
  app.add_option("--device", options->device, names + "or cpu: this one, measured")->required();
  app.add_option("--tp", options->tp, "Devices that share every part")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option(
         "--context", options->context,
         "Tokens in the cache of each sequence; 0: weights only (default: 4096, or what the model allows)")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30));
  app.add_option("--batch", options->batch, "Sequences in the step")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  add_store(app, options->store);
  return [options](Console& console) {
    const workbench::StoreMap store = workbench::parse_store(options->store);
    const workbench::ModelFolder folder = workbench::open_model_folder(options->model);
    const int64_t limit = folder.spec.max_positions;
    const int64_t context = options->context.value_or(std::min<int64_t>(4096, limit));
    if (context > limit)
      throw Error(ErrorKind::kLimit, {.where = "--context",
                                      .expected = fmt::format("at most {} tokens, the model's limit", limit),
                                      .found = fmt::format("{}", context),
                                      .mend = {}});
    const RooflineOptions roofline_options{.device = find_device(options->device),
                                           .tp = options->tp,
                                           .context = context,
                                           .batch = options->batch};
    const workbench::Inventory inventory = workbench::take_inventory(folder, store);
    const Roofline result = workbench::roofline(folder.spec, inventory, roofline_options);
    if (console.json) {
      console.emit(to_json(result, inventory, roofline_options));
    } else {
      console.print(to_text(result, inventory, roofline_options));
    }
    return kOk;
  };
}

}  // namespace sinter::cli
