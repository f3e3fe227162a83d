#include "workbench/inspect.h"

#include <algorithm>
#include <array>

#include "models/model.h"

namespace sinter::workbench {
namespace {

using models::Part;

constexpr std::array kPartOrder = {Part::kRouted,    Part::kShared,  Part::kDense,
                                   Part::kAttention, Part::kIndexer, Part::kRouter,
                                   Part::kHead,      Part::kNorms,   Part::kEmbedding};
constexpr int64_t kCacheElementBytes = 2;  // bf16

FormatShare& share_of(PartSummary& summary, ops::WeightFormat format) {
  for (FormatShare& share : summary.formats)
    if (share.format == format) return share;
  return summary.formats.emplace_back(FormatShare{.format = format});
}

PartSummary summarize(Part part, const models::DecoderSpec& spec, const Inventory& inventory) {
  PartSummary summary{.part = part};
  for (size_t i = 0; i < inventory.tensors.size(); ++i) {
    const models::TensorSpec& tensor = inventory.tensors[i];
    if (tensor.part != part) continue;
    FormatShare& share = share_of(summary, inventory.formats[i]);
    ++share.num_tensors;
    share.num_parameters += tensor.num_elements();
    share.bytes += inventory.stored_bytes[i];
  }
  std::ranges::sort(summary.formats, std::greater(), &FormatShare::bytes);
  for (const FormatShare& share : summary.formats) {
    summary.num_parameters += share.num_parameters;
    summary.bytes += share.bytes;
  }
  summary.num_active = part == Part::kEmbedding ? 0
                       : part == Part::kRouted  ? summary.num_parameters / spec.moe->E * spec.moe->A
                                                : summary.num_parameters;
  if (part == Part::kHead && spec.has_tied_head) summary.num_active = spec.V * spec.H;
  return summary;
}

}  // namespace

Inspection inspect(const ModelFolder& folder, const Inventory& inventory) {
  Inspection result;
  for (const Part part : kPartOrder) {
    PartSummary summary = summarize(part, folder.spec, inventory);
    if (summary.num_parameters == 0 && summary.num_active == 0) continue;
    result.num_parameters += summary.num_parameters;
    result.num_active += summary.num_active;
    result.bytes += summary.bytes;
    result.parts.push_back(std::move(summary));
  }
  if (folder.checkpoint.has_weights())
    result.other_bytes =
        std::max<int64_t>(0, static_cast<int64_t>(folder.checkpoint.total_bytes()) - result.bytes);
  for (const models::CacheTensorSpec& tensor : models::cache_tensors(folder.spec)) {
    const auto it = std::ranges::find(result.caches, tensor.name, &CacheSummary::name);
    CacheSummary& cache = it != result.caches.end()
                              ? *it
                              : result.caches.emplace_back(CacheSummary{.name = std::string(tensor.name)});
    ++cache.num_layers;
    cache.width = tensor.width;
    cache.bytes_per_token += tensor.width * kCacheElementBytes;
    result.cache_bytes_per_token += tensor.width * kCacheElementBytes;
  }
  return result;
}

}  // namespace sinter::workbench
