#include "workbench/model_folder.h"

#include <string>
#include <system_error>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "models/model.h"
#include "workbench/quantization_config.h"

namespace fs = std::filesystem;

namespace sinter::workbench {
namespace {

// Where a shipped model may lie: a build folder and an installation both have them above the program.
std::vector<fs::path> shipped_candidates(std::string_view model) {
  std::vector<fs::path> parents;
  if (!environment().models.empty()) parents.push_back(environment().models);
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error);
  while (!error && folder.has_relative_path()) {
    folder = folder.parent_path();
    parents.push_back(folder / "models");
    parents.push_back(folder / "share" / "sinter" / "models");
  }
  std::vector<fs::path> candidates;
  for (const fs::path& parent : parents) {
    candidates.push_back(parent / model);
    candidates.push_back(parent / "configs" / model);
  }
  return candidates;
}

}  // namespace

fs::path find_model(std::string_view model) {
  fs::path path{model};
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  const bool is_name =
      !model.empty() && model.find('/') == std::string_view::npos && model != "." && model != "..";
  // `demo` is the shipped one wherever one stands; other names give way to a folder.
  if (is_name && (model == "demo" || !is_folder))
    for (const fs::path& candidate : shipped_candidates(model))
      if (fs::exists(candidate / "config.json", ignored)) return candidate;
  if (is_folder && fs::exists(path / "config.json", ignored)) return path;
  if (path.filename() == "config.json" && fs::is_regular_file(path, ignored))
    return path.has_parent_path() ? path.parent_path() : fs::path(".");
  throw Error(ErrorKind::kFile,
              {.where = path.string(),
               .expected = "a model folder with config.json, in the Hugging Face layout",
               .found = is_folder                   ? "a folder without one"
                        : fs::exists(path, ignored) ? "a file"
                                                    : "no such folder",
               .mend = is_name ? "shipped ones are looked for above the program and in SINTER_MODELS"
                               : "'demo' names the shipped model"});
}

ModelFolder open_model_folder(std::string_view model) {
  checkpoint::Checkpoint checkpoint(find_model(model));
  models::DecoderSpec spec = models::read_decoder_spec(checkpoint.config(), checkpoint.config_where());
  if (checkpoint.has_weights()) QuantizationConfig::check_method(checkpoint);
  return {std::move(checkpoint), std::move(spec)};
}

void ModelFolder::require_weights() const {
  if (checkpoint.has_weights()) return;
  throw Error(ErrorKind::kFile, {.where = path().string(),
                                 .expected = "weights (*.safetensors)",
                                 .found = "only config.json",
                                 .mend = "`sinter synth` makes random weights of any configuration"});
}

}  // namespace sinter::workbench
