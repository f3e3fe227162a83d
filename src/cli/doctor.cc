#include "workbench/doctor.h"

#include <nlohmann/json.hpp>

#include "cli/model_option.h"
#include "cli/table.h"
#include "cli/verb.h"
#include "device/device_info.h"
#include "workbench/device_choice.h"

namespace sinter::cli {
namespace {

using workbench::Finding;
using workbench::Level;
using workbench::ModelReport;

struct Report {
  std::vector<Finding> machine;
  std::vector<workbench::KernelRow> kernels;
  std::optional<ModelReport> model;
};

std::string_view color(Level level) {
  switch (level) {
    case Level::kOk: return "\x1b[32m";
    case Level::kWarning: return "\x1b[33m";
    case Level::kFailure: return "\x1b[31m";
    case Level::kNote: break;
  }
  return "\x1b[2m";
}

std::string line(const Finding& finding, bool has_color) {
  const std::string level = fmt::format("{:<4}", name(finding.level));
  return fmt::format("{}  {:<14}  {}{}\n",
                     has_color ? fmt::format("{}{}\x1b[0m", color(finding.level), level) : level,
                     finding.subject, finding.text,
                     finding.mend.empty() ? "" : fmt::format("\n      {:<14}  -> {}", "", finding.mend));
}

// Of each op the kernels that run here, and how many do not.
std::string kernel_lines(const std::vector<workbench::KernelRow>& rows) {
  Table table({"op", "kernels that run here", "not here"});
  for (int i = 0; i < ops::kNumOps; ++i) {
    const auto op = static_cast<ops::Op>(i);
    std::string can, cannot;
    for (const workbench::KernelRow& row : rows) {
      if (row.kernel->op != op) continue;
      std::string& list = row.can_run ? can : cannot;
      list += fmt::format("{}{}", list.empty() ? "" : ", ", row.kernel->name);
      if (!row.can_run) list += fmt::format(" ({})", row.reason);
    }
    table.add({std::string(name(op)), can.empty() ? "none" : can, cannot});
  }
  return table.text();
}

std::string choice_lines(const ModelReport& model) {
  Table table({"in the model", "decode", "prefill"});
  for (size_t i = 0; i < model.decode.size(); ++i) {
    const auto text = [](const dispatch::Verdict* verdict) {
      return verdict == nullptr ? "none" : fmt::format("{} ({})", verdict->kernel->name, verdict->reason);
    };
    const dispatch::Verdict* decode = model.decode[i].chosen();
    const dispatch::Verdict* prefill = i < model.prefill.size() ? model.prefill[i].chosen() : nullptr;
    const bool is_same = decode != nullptr && prefill != nullptr && decode->kernel == prefill->kernel;
    table.add({model.decode[i].problem.where, text(decode), is_same ? "same" : text(prefill)});
  }
  return table.text();
}

std::string findings_text(const Report& report, bool has_color) {
  std::string text;
  for (const Finding& finding : report.machine) text += line(finding, has_color);
  if (report.model) {
    text += "\n";
    for (const Finding& finding : report.model->findings) text += line(finding, has_color);
  }
  return text;
}

Json findings_json(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings)
    list.push_back({{"level", name(finding.level)},
                    {"subject", finding.subject},
                    {"text", finding.text},
                    {"mend", finding.mend}});
  return list;
}

Json choices_json(const std::vector<workbench::ProblemVerdicts>& problems) {
  Json list = Json::array();
  for (const workbench::ProblemVerdicts& problem : problems) {
    const dispatch::Verdict* chosen = problem.chosen();
    list.push_back({{"where", problem.problem.where},
                    {"problem", describe(problem.problem.problem)},
                    {"kernel", chosen == nullptr ? Json() : Json(chosen->kernel->name)},
                    {"reason", chosen == nullptr ? "" : chosen->reason}});
  }
  return list;
}

Json to_json(const Report& report) {
  Json kernels = Json::array();
  for (const workbench::KernelRow& row : report.kernels)
    kernels.push_back({{"name", row.kernel->name},
                       {"op", name(row.kernel->op)},
                       {"can_run", row.can_run},
                       {"reason", row.reason}});
  Json json = {{"version", SINTER_VERSION}, {"machine", findings_json(report.machine)}, {"kernels", kernels}};
  if (report.model)
    json["model"] = {{"can_run", report.model->can_run()},
                     {"device", report.model->device},
                     {"weight_bytes", report.model->weight_bytes},
                     {"cache_bytes_per_token", report.model->cache_bytes_per_token},
                     {"longest_context", report.model->longest_context},
                     {"findings", findings_json(report.model->findings)},
                     {"decode", choices_json(report.model->decode)},
                     {"prefill", choices_json(report.model->prefill)}};
  return json;
}

}  // namespace

std::function<int(Console&)> define_doctor(CLI::App& app) {
  struct Options {
    std::string model, store, device = "auto";
    bool markdown = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::Option* model =
      app.add_option("MODEL", options->model, "Does this model run here? A folder, or `demo`");
  add_store(app, options->store)->needs(model);
  app.add_option("--device", options->device,
                 "Where the model is to run: auto, cpu, gpu, gpu:N, or h200, ...")
      ->capture_default_str();
  app.add_flag("--markdown", options->markdown, "As a block to paste into a report");
  return [options](Console& console) {
    const workbench::StoreMap store = workbench::parse_store(options->store);
    const DeviceInfo device = workbench::find_device_info(options->device);
    Report report;
    // The model first: a wrong name is told at once.
    if (!options->model.empty())
      report.model = workbench::examine_model(workbench::open_model_folder(options->model), store, device);
    report.machine = workbench::examine_machine();
    report.kernels = workbench::list_kernels(device, std::nullopt);
    if (console.json) {
      console.emit(to_json(report));
    } else {
      std::string text = findings_text(report, console.has_color() && !options->markdown) + "\n";
      text += report.model ? choice_lines(*report.model) : kernel_lines(report.kernels);
      if (options->markdown) text = fmt::format("```text\nsinter {}\n{}```\n", SINTER_VERSION, text);
      console.print(text);
    }
    return report.model && !report.model->can_run() ? kFailed : kOk;
  };
}

}  // namespace sinter::cli
