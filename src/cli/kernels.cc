#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/model_option.h"
#include "cli/table.h"
#include "cli/verb.h"
#include "device/device_info.h"
#include "workbench/device_choice.h"
#include "workbench/kernel_list.h"

namespace sinter::cli {
namespace {

using workbench::KernelRow;
using workbench::ProblemVerdicts;

void show_registry(Console& console, const std::vector<KernelRow>& rows) {
  if (console.json) {
    Json kernels = Json::array();
    for (const KernelRow& row : rows)
      kernels.push_back({{"name", row.kernel->name},
                         {"op", name(row.kernel->op)},
                         {"layout", name(row.kernel->layout)},
                         {"is_oracle", row.kernel->is_oracle},
                         {"can_run", row.can_run},
                         {"reason", row.reason}});
    console.emit({{"kernels", kernels}});
    return;
  }
  Table table({"kernel", "op", "weights", "here"});
  for (const KernelRow& row : rows)
    table.add({std::string(row.kernel->name), std::string(name(row.kernel->op)),
               std::string(name(row.kernel->layout)), row.can_run ? "yes" : "no: " + row.reason});
  console.print(table.text());
}

void show_model(Console& console, const std::vector<ProblemVerdicts>& problems) {
  if (console.json) {
    Json json_problems = Json::array();
    for (const ProblemVerdicts& problem : problems) {
      Json verdicts = Json::array();
      for (const dispatch::Verdict& verdict : problem.verdicts)
        verdicts.push_back(
            {{"kernel", verdict.kernel->name}, {"chosen", verdict.chosen}, {"reason", verdict.reason}});
      json_problems.push_back({{"where", problem.problem.where},
                               {"op", name(ops::op_of(problem.problem.problem))},
                               {"problem", describe(problem.problem.problem)},
                               {"kernels", verdicts}});
    }
    console.emit({{"problems", json_problems}});
    return;
  }
  for (const ProblemVerdicts& problem : problems) {
    console.print(fmt::format("{}: {}\n", problem.problem.where, describe(problem.problem.problem)));
    for (const dispatch::Verdict& verdict : problem.verdicts)
      console.print(
          fmt::format("  {} {:<36} {}\n", verdict.chosen ? "*" : " ", verdict.kernel->name, verdict.reason));
  }
}

}  // namespace

std::function<int(Console&)> define_kernels(CLI::App& app) {
  struct Options {
    std::string op, model, store, device = "auto";
    int64_t num_tokens = 1, context = 0;
  };
  const auto options = std::make_shared<Options>();
  app.add_option("--op", options->op, "Only kernels of this op");
  CLI::Option* model =
      app.add_option("--model", options->model, "What each problem of a model gets, and why");
  app.add_option("--tokens", options->num_tokens, "Tokens in the step, with --model")
      ->needs(model)
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--context", options->context,
                 "Tokens of context, with --model; 0: 4096, or what the model allows")
      ->needs(model)
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  app.add_option("--device", options->device,
                 "Of which device: auto, cpu, gpu, gpu:N, or one that need not be here: sm_120a, h200, ...")
      ->capture_default_str();
  add_store(app, options->store)->needs(model);
  return [options](Console& console) {
    const DeviceInfo device = workbench::find_device_info(options->device);
    std::optional<ops::Op> op;
    if (!options->op.empty()) op = workbench::find_op(options->op);
    const workbench::StoreMap store = workbench::parse_store(options->store);
    if (options->model.empty()) {
      show_registry(console, workbench::list_kernels(device, op));
      return kOk;
    }
    const workbench::ModelFolder folder = workbench::open_model_folder(options->model);
    const workbench::Inventory inventory = workbench::take_inventory(folder, store);
    const int64_t context =
        options->context > 0 ? options->context : std::min<int64_t>(4096, folder.spec.max_positions);
    std::vector<workbench::ModelProblem> problems =
        workbench::model_problems(folder.spec, inventory, options->num_tokens, context);
    if (op) std::erase_if(problems, [&](const auto& problem) { return ops::op_of(problem.problem) != *op; });
    ThreadPool pool(1);
    show_model(console, workbench::explain_model(dispatch::Context(device, pool), std::move(problems)));
    return kOk;
  };
}

}  // namespace sinter::cli
