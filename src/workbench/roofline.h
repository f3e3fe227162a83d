// The least time a decode step can take on a device: bytes against bandwidth and operations against the
// matrix rate, part by part, for a device that need not be present.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/known_devices.h"
#include "workbench/inventory.h"

namespace sinter::workbench {

struct RooflineOptions {
  KnownDevice device;
  int64_t tp = 1;       // devices that share every part
  int64_t context = 0;  // tokens in the cache of each sequence; 0: weights only
  int64_t batch = 1;    // sequences, one token each
};

struct RooflinePart {
  std::string name;       // a part's name, "kv_cache" or "indexer_keys"
  double bytes = 0;       // of all devices together
  double operations = 0;  // a multiply-add counts two
  double time_us = 0;
  bool is_bound_by_operations = false;
};

struct Roofline {
  std::vector<RooflinePart> parts;
  double bytes = 0, operations = 0, time_us = 0;
  double tokens_per_s = 0;      // of all sequences together
  double distinct_experts = 0;  // expected number read in each sparse layer
  double stored_bytes = 0;      // the whole model
  double cache_bytes = 0;       // of all sequences
  double memory_bytes = 0;      // of all devices
  // The same step when the narrow projections of MLA, the indexer, the router and the latent cache, or
  // key/value heads beyond their number, are copied to each device instead of being split.
  struct Replicated {
    double bytes_per_device = 0, time_us = 0, tokens_per_s = 0;
  } replicated;
  bool fits() const { return stored_bytes + cache_bytes <= memory_bytes; }
};

Roofline roofline(const models::DecoderSpec& spec, const Inventory& inventory,
                  const RooflineOptions& options);

}  // namespace sinter::workbench
