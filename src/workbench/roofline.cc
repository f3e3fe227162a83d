#include "workbench/roofline.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/model.h"

namespace sinter::workbench {
namespace {

using models::Part;
using models::TensorSpec;
using ops::WeightFormat;

constexpr double kCacheElementBytes = 2;  // bf16
constexpr std::array kPartOrder = {Part::kRouted,    Part::kShared,  Part::kDense,
                                   Part::kAttention, Part::kIndexer, Part::kRouter,
                                   Part::kHead,      Part::kNorms,   Part::kEmbedding};

// 1e12 operations per second for weights of a format. A device without units for a format decodes it and
// works at the rate of the next wider type.
double matrix_tflops(const KnownDevice& device, WeightFormat format) {
  switch (format) {
    case WeightFormat::kNvfp4:
    case WeightFormat::kMxfp4:
      if (device.fp4_tflops > 0) return device.fp4_tflops;
      [[fallthrough]];
    case WeightFormat::kFp8Tensor:
    case WeightFormat::kFp8Block:
      if (device.fp8_tflops > 0) return device.fp8_tflops;
      [[fallthrough]];
    default: return device.bf16_tflops;
  }
}

// Bytes, operations and how many devices hold a copy of what one step reads.
class Step {
 public:
  explicit Step(const RooflineOptions& options) : options_(options) {}

  // `copies`: devices that read the same bytes in the replicated case, 1 when they are split.
  void add(RooflinePart& part, double bytes, double operations, double tflops, double copies = 1) {
    part.bytes += bytes;
    part.operations += operations;
    if (tflops > 0) {
      operations_us_ += operations / tflops * 1e-6;
    }
    replicated_bytes_per_device_ += bytes * copies / static_cast<double>(options_.tp);
  }

  // Closes a part: its time is that of the slower of memory and matrix units.
  void close(RooflinePart& part) {
    const double devices = static_cast<double>(options_.tp);
    const double memory_us = part.bytes / (options_.device.read_gb_per_s * 1e3) / devices;
    const double operations_us = operations_us_ / devices;
    part.is_bound_by_operations = operations_us > memory_us;
    part.time_us = std::max(memory_us, operations_us);
    operations_excess_us_ += part.time_us - memory_us;
    operations_us_ = 0;
  }

  double replicated_bytes_per_device() const { return replicated_bytes_per_device_; }
  double operations_excess_us() const { return operations_excess_us_; }

 private:
  const RooflineOptions& options_;
  double operations_us_ = 0;         // of the open part, on one device
  double operations_excess_us_ = 0;  // by which operations exceed memory, over all closed parts
  double replicated_bytes_per_device_ = 0;
};

// Share of a tensor that a step reads: distinct experts for routed weights, one row a token for the table.
double share_read(const TensorSpec& tensor, const models::DecoderSpec& spec, const RooflineOptions& options,
                  double distinct_experts) {
  if (tensor.part == Part::kRouted) return distinct_experts / static_cast<double>(spec.moe->E);
  if (tensor.part == Part::kEmbedding)
    return std::min(1.0, static_cast<double>(options.batch) / static_cast<double>(spec.V));
  return 1;
}

double share_computed(const TensorSpec& tensor, const models::DecoderSpec& spec) {
  if (tensor.kind != TensorSpec::Kind::kLinear) return 0;
  if (tensor.part != Part::kRouted) return 1;
  return static_cast<double>(spec.moe->A) / static_cast<double>(spec.moe->E);
}

// Devices that would hold the same matrix in a split by heads.
double num_copies(const TensorSpec& tensor, const models::DecoderSpec& spec, double devices) {
  if (tensor.part == Part::kRouter || tensor.part == Part::kIndexer) return devices;
  if (tensor.part != Part::kAttention) return 1;
  const std::string& name = tensor.name;
  if (name.ends_with(".q_a_proj") || name.ends_with(".kv_a_proj_with_mqa")) return devices;
  const auto* gqa = std::get_if<models::GqaSpec>(&spec.attention);
  if (gqa != nullptr && (name.ends_with(".k_proj") || name.ends_with(".v_proj")))
    return std::max(1.0, devices / static_cast<double>(gqa->G));
  return 1;
}

void add_cache_reads(const models::DecoderSpec& spec, const RooflineOptions& options, Step& step,
                     std::vector<RooflinePart>& parts) {
  const double context = static_cast<double>(options.context), batch = static_cast<double>(options.batch);
  const double L = static_cast<double>(spec.L), devices = static_cast<double>(options.tp);
  const double tflops = options.device.bf16_tflops;
  RooflinePart cache{.name = "kv_cache"};
  if (const auto* gqa = std::get_if<models::GqaSpec>(&spec.attention)) {
    const double width = 2.0 * static_cast<double>(gqa->G * gqa->D);
    const double operations = 4.0 * static_cast<double>(gqa->Q * gqa->D);
    step.add(cache, L * batch * context * width * kCacheElementBytes, L * batch * context * operations,
             tflops, std::max(1.0, devices / static_cast<double>(gqa->G)));
    step.close(cache);
    parts.push_back(cache);
    return;
  }
  const auto& mla = std::get<models::MlaSpec>(spec.attention);
  const double rows = mla.indexer ? std::min(context, static_cast<double>(mla.indexer->topk)) : context;
  const double operations = 2.0 * static_cast<double>(mla.Q * (2 * mla.C + mla.R));
  step.add(cache, L * batch * rows * static_cast<double>(mla.C + mla.R) * kCacheElementBytes,
           L * batch * rows * operations, tflops, devices);
  step.close(cache);
  parts.push_back(cache);
  if (!mla.indexer) return;
  // Up to topk tokens everything is chosen, and nothing has to be scored.
  const double scored = context > static_cast<double>(mla.indexer->topk) ? context : 0;
  const double num_full =
      static_cast<double>(std::count(mla.indexer->is_full.begin(), mla.indexer->is_full.end(), true));
  RooflinePart keys{.name = "indexer_keys"};
  step.add(keys, num_full * batch * scored * static_cast<double>(mla.indexer->D) * kCacheElementBytes,
           num_full * batch * scored * 2.0 * static_cast<double>(mla.indexer->heads * mla.indexer->D), tflops,
           devices);
  step.close(keys);
  parts.push_back(keys);
}

}  // namespace

Roofline roofline(const models::DecoderSpec& spec, const Inventory& inventory,
                  const RooflineOptions& options) {
  Roofline result;
  const double batch = static_cast<double>(options.batch), devices = static_cast<double>(options.tp);
  if (spec.moe) {
    const double E = static_cast<double>(spec.moe->E), A = static_cast<double>(spec.moe->A);
    // Tokens choose on their own and evenly: an expert is missed by all of them with (1 - A/E)^batch.
    result.distinct_experts = options.batch == 1 ? A : E * (1 - std::pow(1 - A / E, batch));
  }

  Step step(options);
  for (const Part part : kPartOrder) {
    RooflinePart row{.name = std::string(name(part))};
    for (size_t i = 0; i < inventory.tensors.size(); ++i) {
      const TensorSpec& tensor = inventory.tensors[i];
      const double stored = static_cast<double>(inventory.stored_bytes[i]);
      const double tflops = matrix_tflops(options.device, inventory.formats[i]);
      const double operations = 2 * batch * static_cast<double>(tensor.num_elements());
      // A tied head reads the whole table besides the rows of the tokens.
      if (part == Part::kHead && spec.has_tied_head && tensor.part == Part::kEmbedding)
        step.add(row, stored, operations, tflops);
      if (tensor.part != part) continue;
      step.add(row, stored * share_read(tensor, spec, options, result.distinct_experts),
               operations * share_computed(tensor, spec), tflops, num_copies(tensor, spec, devices));
    }
    step.close(row);
    if (row.bytes > 0) result.parts.push_back(std::move(row));
  }
  if (options.context > 0) add_cache_reads(spec, options, step, result.parts);

  for (const RooflinePart& part : result.parts) {
    result.bytes += part.bytes;
    result.operations += part.operations;
    result.time_us += part.time_us;
  }
  for (const int64_t bytes : inventory.stored_bytes) result.stored_bytes += static_cast<double>(bytes);
  for (const models::CacheTensorSpec& tensor : models::cache_tensors(spec))
    result.cache_bytes += static_cast<double>(tensor.width * options.context) * batch * kCacheElementBytes;
  result.memory_bytes = options.device.memory_bytes() * devices;
  result.tokens_per_s = batch / result.time_us * 1e6;
  result.replicated.bytes_per_device = step.replicated_bytes_per_device();
  result.replicated.time_us =
      step.replicated_bytes_per_device() / (options.device.read_gb_per_s * 1e3) + step.operations_excess_us();
  result.replicated.tokens_per_s = batch / result.replicated.time_us * 1e6;
  return result;
}

}  // namespace sinter::workbench
