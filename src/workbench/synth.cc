#include "workbench/synth.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "models/model.h"
#include "numerics/bf16.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/fp16.h"

namespace fs = std::filesystem;

namespace sinter::workbench {
namespace {

using models::TensorSpec;
using ops::WeightFormat;

constexpr size_t kChunkBytes = size_t{1} << 20;

// SplitMix64: a counter and a finaliser, so one tensor never depends on another.
class Random {
 public:
  Random(uint64_t seed, std::string_view tensor_name) : state_(seed * 0x9e3779b97f4a7c15u + 1) {
    for (const char c : tensor_name) state_ = (state_ ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
    next();
  }
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }

 private:
  uint64_t state_;
};

// Random e4m3 codes keep sign and mantissa and the lower eight exponents: no NaN, magnitudes under 2.
constexpr uint64_t kFp8Mask = 0xbfbfbfbfbfbfbfbfu;
// Block scales 256, 288, 320 and 352: the upper end, where those of real tensors lie.
constexpr uint64_t kScaleBits = 0x7878787878787878u, kScaleMask = 0x0303030303030303u;
constexpr uint8_t kMxfp4Exponent = 127;

double rms(double sum_of_squares, double count) { return std::sqrt(sum_of_squares / count); }

double e2m1_rms() {
  double sum = 0;
  for (int code = 0; code < 16; ++code) sum += std::pow(numerics::from_e2m1(static_cast<uint8_t>(code)), 2);
  return rms(sum, 16);
}

double fp8_rms() {
  double sum = 0;
  for (int code = 0; code < 256; ++code)
    sum += std::pow(numerics::from_e4m3(static_cast<uint8_t>(code & (kFp8Mask & 0xff))), 2);
  return rms(sum, 256);
}

double block_scale_rms() {
  double sum = 0;
  for (int mantissa = 0; mantissa < 4; ++mantissa)
    sum += std::pow(numerics::from_e4m3(static_cast<uint8_t>(0x78 | mantissa)), 2);
  return rms(sum, 4);
}

// Standard deviation that keeps the variance of activations.
double sigma_of(const TensorSpec& tensor) {
  return tensor.kind == TensorSpec::Kind::kLinear ? 1 / std::sqrt(static_cast<double>(tensor.K)) : 1;
}

class Generator {
 public:
  Generator(CheckpointWriter& writer, uint64_t seed) : writer_(writer), seed_(seed), chunk_(kChunkBytes) {}

  void write(const TensorSpec& tensor, WeightFormat format) {
    Random random(seed_, tensor.name);
    const double sigma = sigma_of(tensor);
    const int64_t N = tensor.N, K = tensor.K;
    switch (format) {
      case WeightFormat::kNvfp4:
        write_bits(random, N * K / 2, ~uint64_t{0}, 0);
        write_bits(random, N * K / 16, kScaleMask, kScaleBits);
        write_f32(static_cast<float>(sigma / e2m1_rms() / block_scale_rms()), 1);
        break;
      case WeightFormat::kMxfp4: {
        write_bits(random, N * K / 2, ~uint64_t{0}, 0);
        const int exponent = static_cast<int>(std::lround(std::log2(sigma / e2m1_rms())));
        const uint64_t scale = static_cast<uint8_t>(std::clamp(kMxfp4Exponent + exponent, 1, 254));
        write_bits(random, N * K / 32, 0, scale * 0x0101010101010101u);
        break;
      }
      case WeightFormat::kFp8Tensor:
        write_bits(random, N * K, kFp8Mask, 0);
        write_f32(static_cast<float>(sigma / fp8_rms()), 1);
        break;
      case WeightFormat::kFp8Block:
        write_bits(random, N * K, kFp8Mask, 0);
        write_f32(static_cast<float>(sigma / fp8_rms()), (N + 127) / 128 * ((K + 127) / 128));
        break;
      default: write_floats(random, tensor, format, sigma);
    }
  }

 private:
  // `count` random bytes, each masked and completed.
  void write_bits(Random& random, int64_t count, uint64_t mask, uint64_t bits) {
    while (count > 0) {
      const size_t size = std::min(static_cast<size_t>(count), kChunkBytes);
      for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        const uint64_t word = (random.next() & mask) | bits;
        std::memcpy(chunk_.data() + i, &word, sizeof word);
      }
      writer_.append(std::span(chunk_).first(size));
      count -= static_cast<int64_t>(size);
    }
  }

  void write_f32(float value, int64_t count) {
    for (int64_t i = 0; i < count; ++i) writer_.append(std::as_bytes(std::span(&value, 1)));
  }

  // Uniform, with `sigma` as standard deviation. Norm weights lie around 1, biases and the like around 0.
  void write_floats(Random& random, const TensorSpec& tensor, WeightFormat format, double sigma) {
    const bool is_vector = tensor.kind == TensorSpec::Kind::kVector;
    const bool is_norm = is_vector && tensor.name.ends_with(".weight");
    const float center = is_norm ? 1.0f : 0.0f;
    const float scale = static_cast<float>((is_vector ? 0.1 : sigma) * std::sqrt(3.0) / 32768);
    const size_t element_bytes = format == WeightFormat::kF32 ? 4 : 2;
    int64_t left = tensor.num_elements();
    while (left > 0) {
      const size_t count = std::min(static_cast<size_t>(left), kChunkBytes / element_bytes);
      uint64_t word = 0;
      for (size_t i = 0; i < count; ++i) {
        word = i % 4 == 0 ? random.next() : word >> 16;
        const float value = center + static_cast<float>(static_cast<int16_t>(word & 0xffff)) * scale;
        if (format == WeightFormat::kF32) {
          std::memcpy(chunk_.data() + 4 * i, &value, 4);
        } else {
          const uint16_t bits =
              format == WeightFormat::kF16 ? numerics::to_fp16(value) : numerics::to_bf16(value);
          std::memcpy(chunk_.data() + 2 * i, &bits, 2);
        }
      }
      writer_.append(std::span(chunk_).first(count * element_bytes));
      left -= static_cast<int64_t>(count);
    }
  }

  CheckpointWriter& writer_;
  uint64_t seed_;
  std::vector<std::byte> chunk_;
};

void truncate_list(Json& config, const char* key, int64_t num_layers) {
  const auto it = config.find(key);
  if (it == config.end() || !it->is_array() || it->size() <= static_cast<size_t>(num_layers)) return;
  it->get_ref<Json::array_t&>().resize(static_cast<size_t>(num_layers));
}

// The configuration that describes what is written.
Json written_config(const ModelFolder& folder, const SynthOptions& options) {
  Json config = folder.checkpoint.config();
  config.erase("quantization_config");
  if (config.contains("num_nextn_predict_layers")) config["num_nextn_predict_layers"] = 0;
  if (options.num_layers > 0) {
    config["num_hidden_layers"] = options.num_layers;
    for (const char* key : {"mlp_layer_types", "indexer_types", "layer_types"})
      truncate_list(config, key, options.num_layers);
  }
  return config;
}

// The format most used in a part: what the part is called by in quantization_config.
StoreMap store_of(const Inventory& inventory) {
  StoreMap store;
  for (size_t i = 0; i < inventory.tensors.size(); ++i)
    if (inventory.tensors[i].kind == TensorSpec::Kind::kLinear)
      store.emplace(inventory.tensors[i].part, inventory.formats[i]);
  return store;
}

}  // namespace

SynthResult synthesize(const ModelFolder& folder, const SynthOptions& options) {
  if (options.num_layers > folder.spec.L)
    throw Error(ErrorKind::kUsage, {.where = "--layers",
                                    .expected = fmt::format("at most {}, as config.json has", folder.spec.L),
                                    .found = fmt::format("{}", options.num_layers),
                                    .mend = ""});
  Json config = written_config(folder, options);
  const models::DecoderSpec spec = models::read_decoder_spec(config, folder.checkpoint.config_where());
  const Inventory inventory = take_inventory(folder, options.store);

  SynthResult result;
  std::vector<checkpoint::TensorSpec> stored;
  std::vector<size_t> taken;
  for (size_t i = 0; i < inventory.tensors.size(); ++i) {
    const TensorSpec& tensor = inventory.tensors[i];
    if (tensor.layer >= spec.L) continue;
    taken.push_back(i);
    result.num_parameters += tensor.num_elements();
    const auto tensors = stored_tensors(tensor, inventory.formats[i]);
    stored.insert(stored.end(), tensors.begin(), tensors.end());
    result.bytes += inventory.stored_bytes[i];
  }
  result.num_tensors = static_cast<int64_t>(stored.size());
  prepare_output_folder(options.out, result.bytes + (int64_t{64} << 20));

  CheckpointWriter writer(options.out, std::move(stored), options.progress);
  Generator generator(writer, options.seed);
  for (const size_t i : taken) generator.write(inventory.tensors[i], inventory.formats[i]);
  writer.finish();
  result.num_shards = writer.num_shards();

  if (const Json block = quantization_block(spec, store_of(inventory), false); !block.is_null()) {
    config["quantization_config"] = block;
    write_json_file(options.out / "hf_quant_config.json", hf_quant_config(block));
  }
  copy_side_files(folder.path(), options.out);
  // Last: a folder with config.json is complete.
  write_json_file(options.out / "config.json", config);
  return result;
}

}  // namespace sinter::workbench
