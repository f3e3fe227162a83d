// What every tensor of a model is stored as, and its bytes: from the checkpoint where there is one, else
// from what config.json says about quantisation; a what-if (--store) goes over both.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/decoder_spec.h"
#include "ops/weights.h"
#include "workbench/model_folder.h"

namespace sinter::workbench {

// Parts whose matrices have a format of their own: "routed=nvfp4,shared=bf16"; `all` names every part but
// the embedding. Later entries win.
using StoreMap = std::map<models::Part, ops::WeightFormat>;

// Throws Error(kUsage) naming the entry and what is allowed.
StoreMap parse_store(std::string_view text);

struct Inventory {
  std::string source;  // "checkpoint" or "config.json", " with --store" where that is on top
  std::string method;  // of config.json when that is the source: "none", "modelopt NVFP4", "fp8"
  std::vector<models::TensorSpec> tensors;
  std::vector<ops::WeightFormat> formats;  // of each tensor; vectors and tables too
  std::vector<int64_t> stored_bytes;       // of each tensor, scales included
};

// Reads headers only, no weights.
Inventory take_inventory(const ModelFolder& folder, const StoreMap& what_if = {});

}  // namespace sinter::workbench
