// What a model is: parameters, formats and bytes by part, cache per token.
#pragma once

#include <cstdint>
#include <vector>

#include "workbench/inventory.h"

namespace sinter::workbench {

struct FormatShare {
  ops::WeightFormat format;
  int64_t num_tensors = 0, num_parameters = 0, bytes = 0;
};

struct PartSummary {
  models::Part part;
  int64_t num_parameters = 0;
  int64_t num_active = 0;  // read for one token
  int64_t bytes = 0;
  std::vector<FormatShare> formats = {};  // most bytes first
};

struct CacheSummary {
  std::string name;  // "latent", "k", "v", "index_k"
  int64_t num_layers = 0, width = 0;
  int64_t bytes_per_token = 0;  // of all layers, bf16
};

struct Inspection {
  std::vector<PartSummary> parts;
  int64_t num_parameters = 0;
  int64_t num_active = 0;  // the head included, the embedding left out
  int64_t bytes = 0;
  int64_t other_bytes = 0;  // in the checkpoint, not part of the model that runs (MTP layers)
  std::vector<CacheSummary> caches;
  int64_t cache_bytes_per_token = 0;
};

Inspection inspect(const ModelFolder& folder, const Inventory& inventory);

}  // namespace sinter::workbench
