// A model as a person names it: a folder in the Hugging Face layout, or a shipped one.
#pragma once

#include <filesystem>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "models/decoder_spec.h"

namespace sinter::workbench {

struct ModelFolder {
  checkpoint::Checkpoint checkpoint;  // weights may be missing
  models::DecoderSpec spec;

  const std::filesystem::path& path() const { return checkpoint.folder(); }
  // For verbs that compute: Error(kFile) unless the folder has weights.
  void require_weights() const;
};

// A folder, or the name of a shipped model: `demo`, or a configuration such as `glm-5`. Those are looked for
// in SINTER_MODELS and in the folders `models` above the program. Throws Error(kFile).
std::filesystem::path find_model(std::string_view model);

// Reads configuration files and the headers of the weights.
ModelFolder open_model_folder(std::string_view model);

}  // namespace sinter::workbench
