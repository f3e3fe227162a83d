#include "workbench/model_folder.h"

#include <cstdlib>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "models/model.h"

namespace fs = std::filesystem;

namespace sinter::workbench {
namespace {

// Where the shipped model may lie: a build folder and an installation both have it above the program.
std::vector<fs::path> demo_candidates() {
  std::vector<fs::path> candidates;
  if (const char* models = std::getenv("SINTER_MODELS"); models != nullptr && *models != '\0')
    candidates.push_back(fs::path(models) / "demo");
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error);
  while (!error && folder.has_relative_path()) {
    folder = folder.parent_path();
    candidates.push_back(folder / "models" / "demo");
    candidates.push_back(folder / "share" / "sinter" / "models" / "demo");
  }
  return candidates;
}

}  // namespace

fs::path find_model(std::string_view model) {
  std::error_code ignored;
  if (model == "demo") {
    const std::vector<fs::path> candidates = demo_candidates();
    for (const fs::path& candidate : candidates)
      if (fs::exists(candidate / "config.json", ignored)) return candidate;
    throw Error(ErrorKind::kFile, {.where = "model 'demo'",
                                   .expected = candidates.empty() ? "models/demo above the program"
                                                                  : candidates.front().string() +
                                                                        "/config.json or models/demo in a "
                                                                        "folder above the program",
                                   .found = "none",
                                   .mend = "set SINTER_MODELS to the folder that holds demo"});
  }
  const fs::path path{model};
  if (fs::is_directory(path, ignored)) {
    if (fs::exists(path / "config.json", ignored)) return path;
    throw Error(ErrorKind::kFile, {.where = path.string(),
                                   .expected = "a model folder with config.json",
                                   .found = "no config.json in it",
                                   .mend = ""});
  }
  if (path.filename() == "config.json" && fs::is_regular_file(path, ignored))
    return path.has_parent_path() ? path.parent_path() : fs::path(".");
  throw Error(ErrorKind::kFile, {.where = path.string(),
                                 .expected = "a model folder in the Hugging Face layout",
                                 .found = fs::exists(path, ignored) ? "a file" : "no such folder",
                                 .mend = "'demo' names the shipped model"});
}

ModelFolder open_model_folder(std::string_view model) {
  checkpoint::Checkpoint checkpoint(find_model(model));
  models::DecoderSpec spec = models::read_decoder_spec(checkpoint.config(), checkpoint.config_where());
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
