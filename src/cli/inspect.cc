#include "workbench/inspect.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/model_option.h"
#include "cli/table.h"
#include "cli/verb.h"
#include "dispatch/dispatch.h"
#include "workbench/gpu_machine.h"

namespace sinter::cli {
namespace {

using workbench::Inspection;

std::string describe_attention(const models::DecoderSpec& spec) {
  if (const auto* gqa = std::get_if<models::GqaSpec>(&spec.attention))
    return fmt::format("GQA, {} heads on {} key/value heads of {}", gqa->Q, gqa->G, gqa->D);
  const auto& mla = std::get<models::MlaSpec>(spec.attention);
  std::string text = fmt::format("MLA, {} heads, latent {} + {}", mla.Q, mla.C, mla.R);
  if (mla.indexer)
    text += fmt::format(", sparse: top {} of {} index heads of {}", mla.indexer->topk, mla.indexer->heads,
                        mla.indexer->D);
  return text;
}

std::string describe_moe(const models::DecoderSpec& spec) {
  if (!spec.moe) return "none";
  const auto num_sparse = std::count(spec.is_sparse.begin(), spec.is_sparse.end(), true);
  return fmt::format(
      "{} of {} experts of width {}{}, in {} of {} layers", spec.moe->A, spec.moe->E, spec.moe->I,
      spec.moe->shared_I > 0 ? fmt::format(" + shared {}", spec.moe->shared_I) : "", num_sparse, spec.L);
}

std::string describe_formats(const workbench::PartSummary& part) {
  std::string text;
  for (const workbench::FormatShare& share : part.formats) {
    if (!text.empty()) text += ", ";
    text += name(share.format);
    if (part.formats.size() > 1) text += fmt::format(" {}", format_bytes(static_cast<double>(share.bytes)));
  }
  return text;
}

Json to_json(const models::DecoderSpec& spec, const workbench::Inventory& inventory,
             const Inspection& inspection) {
  Json parts = Json::array();
  for (const workbench::PartSummary& part : inspection.parts) {
    Json formats = Json::array();
    for (const workbench::FormatShare& share : part.formats)
      formats.push_back({{"format", name(share.format)},
                         {"num_tensors", share.num_tensors},
                         {"num_parameters", share.num_parameters},
                         {"bytes", share.bytes}});
    parts.push_back({{"name", name(part.part)},
                     {"num_parameters", part.num_parameters},
                     {"num_active_parameters", part.num_active},
                     {"bytes", part.bytes},
                     {"formats", formats}});
  }
  Json caches = Json::array();
  for (const workbench::CacheSummary& cache : inspection.caches)
    caches.push_back({{"name", cache.name},
                      {"num_layers", cache.num_layers},
                      {"width", cache.width},
                      {"bytes_per_token", cache.bytes_per_token}});
  return {{"model_type", spec.model_type},
          {"source", inventory.source},
          {"num_layers", spec.L},
          {"hidden_size", spec.H},
          {"vocab_size", spec.V},
          {"max_positions", spec.max_positions},
          {"num_mtp_layers", spec.num_mtp_layers},
          {"num_parameters", inspection.num_parameters},
          {"num_active_parameters", inspection.num_active},
          {"bytes", inspection.bytes},
          {"other_bytes", inspection.other_bytes},
          {"kv_bytes_per_token", inspection.cache_bytes_per_token},
          {"parts", parts},
          {"caches", caches}};
}

// Of every GPU of this machine.
struct Fit {
  std::string gpu;
  int64_t free_bytes, longest_context;  // 0: does not fit
};

std::vector<Fit> fits_here(const models::DecoderSpec& spec, const Inspection& inspection) {
  std::vector<Fit> fits;
  for (const GpuInfo& gpu : list_gpus().gpus) {
    const int64_t free_bytes = workbench::free_memory_bytes(gpu);
    const int64_t longest = dispatch::longest_gpu_context(
        static_cast<uint64_t>(free_bytes), static_cast<uint64_t>(inspection.bytes),
        static_cast<uint64_t>(inspection.cache_bytes_per_token));
    fits.push_back({fmt::format("GPU {} ({})", gpu.device_idx, gpu.name), free_bytes,
                    std::min(longest, spec.max_positions)});
  }
  return fits;
}

std::string to_text(const std::vector<Fit>& fits) {
  std::string text;
  for (const Fit& fit : fits)
    text += fmt::format("{}, {} free: {}\n", fit.gpu, format_bytes(static_cast<double>(fit.free_bytes)),
                        fit.longest_context > 0
                            ? fmt::format("fits, with a context of up to {} tokens", fit.longest_context)
                            : "does not fit");
  return text;
}

Json to_json(const std::vector<Fit>& fits) {
  Json list = Json::array();
  for (const Fit& fit : fits)
    list.push_back({{"gpu", fit.gpu},
                    {"free_bytes", fit.free_bytes},
                    {"fits", fit.longest_context > 0},
                    {"longest_context", fit.longest_context}});
  return list;
}

std::string to_text(const models::DecoderSpec& spec, const workbench::Inventory& inventory,
                    const Inspection& inspection) {
  std::string text = fmt::format(
      "{}: {} layers, hidden {}, vocabulary {}, up to {} positions\n"
      "attention  {}\n"
      "experts    {}\n"
      "parameters {} in all, {} active per token\n"
      "formats from {}{}\n\n",
      spec.model_type, spec.L, spec.H, spec.V, spec.max_positions, describe_attention(spec),
      describe_moe(spec), format_count(static_cast<double>(inspection.num_parameters)),
      format_count(static_cast<double>(inspection.num_active)), inventory.source,
      inventory.method.empty() ? "" : fmt::format(" (quantisation: {})", inventory.method));
  Table table({"part", ">parameters", ">active", ">bytes", "stored as"});
  for (const workbench::PartSummary& part : inspection.parts)
    table.add({std::string(name(part.part)), format_count(static_cast<double>(part.num_parameters)),
               format_count(static_cast<double>(part.num_active)),
               format_bytes(static_cast<double>(part.bytes)), describe_formats(part)});
  table.add_rule();
  table.add({"all", format_count(static_cast<double>(inspection.num_parameters)),
             format_count(static_cast<double>(inspection.num_active)),
             format_bytes(static_cast<double>(inspection.bytes))});
  text += table.text();
  if (inspection.other_bytes > 0)
    text +=
        fmt::format("\nand {} in the checkpoint that are not part of a step{}\n",
                    format_bytes(static_cast<double>(inspection.other_bytes)),
                    spec.num_mtp_layers > 0 ? " (the MTP layer, scales of tensors)" : " (scales of tensors)");
  text += fmt::format("\ncache per token: {} bytes in bf16", inspection.cache_bytes_per_token);
  for (const workbench::CacheSummary& cache : inspection.caches)
    text += fmt::format("{} {} x {} in {} layers", &cache == &inspection.caches.front() ? " =" : ",",
                        cache.name, cache.width, cache.num_layers);
  return text + "\n";
}

}  // namespace

std::function<int(Console&)> define_inspect(CLI::App& app) {
  struct Options {
    std::string model, store;
  };
  const auto options = std::make_shared<Options>();
  add_model(app, options->model);
  add_store(app, options->store);
  return [options](Console& console) {
    const workbench::StoreMap store = workbench::parse_store(options->store);
    const workbench::ModelFolder folder = workbench::open_model_folder(options->model);
    const workbench::Inventory inventory = workbench::take_inventory(folder, store);
    const Inspection inspection = workbench::inspect(folder, inventory);
    if (console.json) {
      Json json = to_json(folder.spec, inventory, inspection);
      json["gpus"] = to_json(fits_here(folder.spec, inspection));
      console.emit(json);
    } else {
      console.print(to_text(folder.spec, inventory, inspection) +
                    to_text(fits_here(folder.spec, inspection)));
    }
    return kOk;
  };
}

}  // namespace sinter::cli
