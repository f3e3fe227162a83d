#include "workbench/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "numerics/fp8.h"
#include "numerics/mxfp4.h"
#include "numerics/nvfp4.h"
#include "workbench/plan_weights.h"

namespace sinter::workbench {
namespace {

using models::TensorSpec;
using ops::Weight;
using ops::WeightFormat;

// Matrices whose input is one and the same vector, by the last parts of their names.
std::string input_group(const std::string& module) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kInputs = {{
      {".gate_proj", ".gate_up"},
      {".up_proj", ".gate_up"},
      {".self_attn.q_proj", ".qkv"},
      {".self_attn.k_proj", ".qkv"},
      {".self_attn.v_proj", ".qkv"},
      {".self_attn.q_a_proj", ".qkv"},
      {".self_attn.kv_a_proj_with_mqa", ".qkv"},
      {".self_attn.indexer.wk", ".qkv"},
      {".self_attn.indexer.weights_proj", ".qkv"},
      {".self_attn.q_b_proj", ".q_latent"},
      {".self_attn.indexer.wq_b", ".q_latent"},
  }};
  for (const auto& [suffix, input] : kInputs)
    if (module.ends_with(suffix)) return module.substr(0, module.size() - suffix.size()) + std::string(input);
  return module;
}

void read_rows(const Weight& weight, int64_t begin, int64_t end, std::vector<float>& values) {
  values.resize(static_cast<size_t>((end - begin) * weight.K));
  const int64_t first = begin * weight.K;
  for (size_t i = 0; i < values.size(); ++i) {
    switch (weight.format) {
      case WeightFormat::kF32:
        values[i] = weight.data.data_as<float>()[first + static_cast<int64_t>(i)];
        break;
      case WeightFormat::kF16:
        values[i] = numerics::from_fp16(weight.data.data_as<uint16_t>()[first + static_cast<int64_t>(i)]);
        break;
      default:
        values[i] = numerics::from_bf16(weight.data.data_as<uint16_t>()[first + static_cast<int64_t>(i)]);
    }
  }
}

std::span<const std::byte> bytes_of(const std::vector<uint8_t>& values) {
  return std::as_bytes(std::span(values));
}

class Quantizer {
 public:
  Quantizer(ThreadPool& pool, CheckpointWriter& writer) : pool_(pool), writer_(writer) {}

  float amax(const Weight& weight) {
    std::vector<float> found(static_cast<size_t>(pool_.num_threads()), 0.0f);
    for_rows(weight, 1, [&](int worker_idx, int64_t, const std::vector<float>& values) {
      float& largest = found[static_cast<size_t>(worker_idx)];
      const float here = numerics::amax(values);
      if (!(here <= largest)) largest = here;  // a NaN wins and is refused later
    });
    float largest = 0;
    for (const float value : found)
      if (!(value <= largest)) largest = value;
    if (!std::isfinite(largest))
      throw Error(
          ErrorKind::kFormat,
          {.where = weight.name, .expected = "finite weights", .found = "NaN or infinity", .mend = ""});
    return largest;
  }

  // `group_amax`: of all matrices that share the tensor scale; used by NVFP4 alone.
  void write(const Weight& weight, WeightFormat format, float group_amax) {
    const size_t count = static_cast<size_t>(weight.N * weight.K);
    const int64_t K = weight.K;
    const bool is_4bit = format == WeightFormat::kNvfp4 || format == WeightFormat::kMxfp4;
    std::vector<uint8_t> codes(is_4bit ? count / 2 : count);
    std::vector<uint8_t> scales(format == WeightFormat::kNvfp4   ? count / 16
                                : format == WeightFormat::kMxfp4 ? count / 32
                                                                 : 0);
    std::vector<float> f32_scales;
    // Codes, scales and errors of rows are independent of each other once the tensor scale is known.
    const auto rows_of = [&](std::vector<uint8_t>& all, int64_t row, size_t num_values, size_t per_byte) {
      return std::span(all).subspan(static_cast<size_t>(row * K) / per_byte, num_values / per_byte);
    };
    switch (format) {
      case WeightFormat::kNvfp4: {
        const numerics::DecodeScale scale = numerics::nvfp4_scale_of_amax(group_amax);
        f32_scales = {scale.value};
        for_rows(weight, 1, [&](int worker_idx, int64_t row, const std::vector<float>& values) {
          const auto row_codes = rows_of(codes, row, values.size(), 2);
          const auto row_scales = rows_of(scales, row, values.size(), 16);
          numerics::quantize_nvfp4(values, scale, row_codes, row_scales);
          std::vector<float> decoded(values.size());
          numerics::dequantize_nvfp4(row_codes, row_scales, scale, decoded);
          add_error(worker_idx, values, decoded);
        });
        break;
      }
      case WeightFormat::kMxfp4:
        for_rows(weight, 1, [&](int worker_idx, int64_t row, const std::vector<float>& values) {
          const auto row_codes = rows_of(codes, row, values.size(), 2);
          const auto row_scales = rows_of(scales, row, values.size(), 32);
          numerics::quantize_mxfp4(values, row_codes, row_scales);
          std::vector<float> decoded(values.size());
          numerics::dequantize_mxfp4(row_codes, row_scales, decoded);
          add_error(worker_idx, values, decoded);
        });
        break;
      case WeightFormat::kFp8Block: {
        const size_t tiles_per_row = static_cast<size_t>(numerics::num_fp8_tiles(K));
        f32_scales.resize(static_cast<size_t>(numerics::num_fp8_tiles(weight.N)) * tiles_per_row);
        for_rows(weight, numerics::kFp8Tile,
                 [&](int worker_idx, int64_t row, const std::vector<float>& values) {
                   const int64_t num_rows = static_cast<int64_t>(values.size()) / K;
                   const auto row_codes = rows_of(codes, row, values.size(), 1);
                   const auto tile_scales =
                       std::span(f32_scales)
                           .subspan(static_cast<size_t>(row / numerics::kFp8Tile) * tiles_per_row,
                                    static_cast<size_t>(numerics::num_fp8_tiles(num_rows)) * tiles_per_row);
                   numerics::quantize_fp8_tiles(values, num_rows, K, row_codes, tile_scales);
                   std::vector<float> decoded(values.size());
                   numerics::dequantize_fp8_tiles(row_codes, tile_scales, num_rows, K, decoded);
                   add_error(worker_idx, values, decoded);
                 });
        break;
      }
      case WeightFormat::kFp8Tensor: {
        std::vector<float> values, decoded(count);
        read_rows(weight, 0, weight.N, values);
        f32_scales = {numerics::quantize_fp8(values, codes)};
        numerics::dequantize_fp8(codes, f32_scales.front(), decoded);
        add_error(0, values, decoded);
        break;
      }
      default: SINTER_CHECK(false, "not a format to quantise to");
    }
    writer_.append(bytes_of(codes));
    if (!scales.empty()) writer_.append(bytes_of(scales));
    if (!f32_scales.empty()) writer_.append(std::as_bytes(std::span(f32_scales)));
  }

  double relative_error() const {
    double error = 0, square = 0;
    for (const Sums& sums : sums_) {
      error += sums.error;
      square += sums.square;
    }
    return square > 0 ? std::sqrt(error / square) : 0;
  }

 private:
  struct alignas(64) Sums {
    double error = 0, square = 0;
  };

  // task(worker_idx, first row, values) over groups of `grain` rows, a few at a time.
  template <typename Task>
  void for_rows(const Weight& weight, int64_t grain, const Task& task) {
    // About a megabyte of floats a piece.
    const int64_t piece = std::max<int64_t>(1, (int64_t{1} << 18) / (weight.K * grain)) * grain;
    pool_.run([&](int worker_idx) {
      std::vector<float> values;
      const ThreadPool::Range range = pool_.part(worker_idx, weight.N, grain);
      for (int64_t row = range.begin; row < range.end; row += piece) {
        read_rows(weight, row, std::min(row + piece, range.end), values);
        task(worker_idx, row, values);
      }
    });
  }

  void add_error(int worker_idx, std::span<const float> values, std::span<const float> decoded) {
    Sums& sums = sums_[static_cast<size_t>(worker_idx)];
    for (size_t i = 0; i < values.size(); ++i) {
      const double difference = static_cast<double>(values[i]) - static_cast<double>(decoded[i]);
      sums.error += difference * difference;
      sums.square += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
  }

  ThreadPool& pool_;
  CheckpointWriter& writer_;
  std::vector<Sums> sums_ = std::vector<Sums>(static_cast<size_t>(pool_.num_threads()));
};

// What is written: a matrix to be quantised, or a tensor to be copied.
struct Item {
  Weight weight = {};  // when quantised
  WeightFormat format = WeightFormat::kBF16;
  std::string group = {};
  const checkpoint::Checkpoint::Stored* copied = nullptr;
};

bool is_float(WeightFormat format) {
  return format == WeightFormat::kF32 || format == WeightFormat::kF16 || format == WeightFormat::kBF16;
}

std::span<const std::byte> data_of(const checkpoint::Checkpoint::Stored& stored) {
  const TensorView view = stored.file->view(*stored.entry);
  return {static_cast<const std::byte*>(view.data()), stored.entry->size_bytes()};
}

void check_store(const StoreMap& store) {
  bool is_any = false;
  for (const auto& [part, format] : store) {
    if (part == models::Part::kEmbedding && !is_float(format))
      throw Error(ErrorKind::kUsage, {.where = "--store",
                                      .expected = "the embedding left as it is",
                                      .found = std::string(name(format)),
                                      .mend = ""});
    is_any |= !is_float(format);
  }
  if (!is_any)
    throw Error(ErrorKind::kUsage, {.where = "--store",
                                    .expected = "a part to be quantised, such as routed=nvfp4",
                                    .found = "none",
                                    .mend = ""});
}

}  // namespace

QuantizeResult quantize(const ModelFolder& folder, ThreadPool& pool, const QuantizeOptions& options) {
  check_store(options.store);
  folder.require_weights();
  const checkpoint::Checkpoint& checkpoint = folder.checkpoint;

  std::vector<Item> items;
  std::vector<checkpoint::TensorSpec> stored;
  std::unordered_set<std::string> consumed;  // tensors of the source that are not copied
  std::unordered_map<std::string, std::vector<size_t>> groups;
  PlanWeights weights(checkpoint, folder.spec);
  for (const TensorSpec& tensor : models::tensor_plan(folder.spec)) {
    const auto planned = options.store.find(tensor.part);
    if (tensor.kind != TensorSpec::Kind::kLinear || planned == options.store.end() ||
        is_float(planned->second))
      continue;
    Item item{.weight = weights.find(tensor), .format = planned->second, .group = input_group(tensor.name)};
    if (!is_float(item.weight.format))
      throw Error(ErrorKind::kUnsupported, {.where = checkpoint.where(item.weight.name),
                                            .expected = "a bf16, f16 or f32 source",
                                            .found = std::string(name(item.weight.format)),
                                            .mend = "quantise the original checkpoint"});
    consumed.insert(item.weight.name);
    if (item.format == WeightFormat::kNvfp4) groups[item.group].push_back(items.size());
    const auto tensors = stored_tensors(tensor, item.format);
    stored.insert(stored.end(), tensors.begin(), tensors.end());
    items.push_back(std::move(item));
  }
  QuantizeResult result;
  result.num_quantized = static_cast<int64_t>(items.size());
  for (const checkpoint::Checkpoint::Stored& tensor : checkpoint.tensors()) {
    if (consumed.contains(tensor.entry->name)) continue;
    const TensorView view = tensor.file->view(*tensor.entry);
    stored.push_back({tensor.entry->name, view.dtype(), view.shape()});
    items.push_back({.copied = &tensor});
  }
  result.num_copied = static_cast<int64_t>(items.size()) - result.num_quantized;
  result.bytes_before = static_cast<int64_t>(checkpoint.total_bytes());

  int64_t needed_bytes = int64_t{64} << 20;
  for (const checkpoint::TensorSpec& tensor : stored)
    needed_bytes += tensor.shape.num_elements() * static_cast<int64_t>(size_bytes(tensor.dtype));
  prepare_output_folder(options.out, needed_bytes);

  CheckpointWriter writer(options.out, std::move(stored), options.progress);
  Quantizer quantizer(pool, writer);
  std::unordered_map<std::string, float> group_amax;
  for (const Item& item : items) {
    if (item.copied != nullptr) {
      writer.append(data_of(*item.copied));
      continue;
    }
    float amax = 0;
    if (item.format == WeightFormat::kNvfp4) {
      const auto [it, is_first] = group_amax.try_emplace(item.group, 0.0f);
      if (is_first)
        for (const size_t member : groups[item.group])
          it->second = std::max(it->second, quantizer.amax(items[member].weight));
      amax = it->second;
    }
    quantizer.write(item.weight, item.format, amax);
  }
  writer.finish();
  result.bytes_after = writer.total_bytes();
  result.relative_error = quantizer.relative_error();

  Json config = checkpoint.config();
  const Json block = quantization_block(folder.spec, options.store, folder.spec.num_mtp_layers > 0);
  config["quantization_config"] = block;
  write_json_file(options.out / "hf_quant_config.json", hf_quant_config(block));
  result.copied_files = copy_side_files(folder.path(), options.out);
  write_json_file(options.out / "config.json", config);
  return result;
}

}  // namespace sinter::workbench
