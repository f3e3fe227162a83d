// A model loaded to run: its folder, the threads, the choice of kernels.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dispatch/dispatch.h"
#include "models/model.h"
#include "text/tokenizer.h"
#include "workbench/device_choice.h"
#include "workbench/model_folder.h"

namespace sinter::workbench {

struct SessionOptions {
  int num_threads = 0;  // 0: one per core
  DeviceChoice device;  // kAuto is the CPU for what only that can: reference, unpacked weights, forced
                        // kernels of its own
  dispatch::Options dispatch;
  int64_t chunk = 512;  // tokens of a step, at most: what a GPU's code is compiled for ahead
  models::LoadProgress progress;
  std::function<void(int64_t done, int64_t total)> compile_progress = {};
};

class Session {
 public:
  Session(ModelFolder folder, const SessionOptions& options);

  const ModelFolder& folder() const { return folder_; }
  models::Model& model() { return *model_; }
  dispatch::Context& context() { return context_; }
  int num_threads() const { return pool_.num_threads(); }

 private:
  ModelFolder folder_;
  ThreadPool pool_;
  dispatch::Context context_;
  std::unique_ptr<models::Model> model_;
};

// Its tokenizer; Error(kFormat) when it makes ids that the embedding has no row for.
text::Tokenizer load_tokenizer(const ModelFolder& folder);

// What generation_config.json says of sampling, over `base`; `found` names the keys that it has.
ops::SampleParams sampling_defaults(const checkpoint::Checkpoint& checkpoint, ops::SampleParams base,
                                    std::vector<std::string>& found);

// Ids that end a text: of config.json and of generation_config.json.
std::vector<int32_t> stop_ids(const ModelFolder& folder);

}  // namespace sinter::workbench
