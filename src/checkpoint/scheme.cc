#include "checkpoint/scheme.h"

#include <cfloat>
#include <cmath>

#include "base/error.h"
#include "numerics/bf16.h"
#include "numerics/e4m3.h"
#include "numerics/e8m0.h"
#include "numerics/fp16.h"
#include "numerics/fp8.h"
#include "numerics/mxfp4.h"
#include "numerics/nvfp4.h"

namespace sinter::checkpoint {
namespace {

using ops::Weight;
using ops::WeightFormat;

struct Named {
  std::string name;
  TensorView view;
};

// The tensors of one matrix, cut to it where they are fused.
struct Parts {
  Named data;
  std::optional<Named> scale;         // of blocks, or of the tensor for FP8
  std::optional<Named> decode_scale;  // weight_scale_2
  std::optional<Named> encode_scale;  // weight_global_scale
  std::optional<Named> input_decode;  // input_scale
  std::optional<Named> input_encode;  // input_global_scale
};

class Reader {
 public:
  Reader(const Checkpoint& checkpoint, int64_t N, int64_t K) : checkpoint_(checkpoint), N_(N), K_(K) {}

  Weight read(const Parts& parts) const {
    switch (parts.data.view.dtype()) {
      case DType::kF32: return plain(parts, WeightFormat::kF32);
      case DType::kF16: return plain(parts, WeightFormat::kF16);
      case DType::kBF16: return plain(parts, WeightFormat::kBF16);
      case DType::kF8E4M3: return fp8(parts);
      case DType::kU8: return fp4(parts);
      default:
        fail(ErrorKind::kUnsupported, parts.data.name,
             "a weight as F32, F16, BF16, F8_E4M3 or packed FP4 (U8)",
             std::string(safetensors_name(parts.data.view.dtype())));
    }
  }

 private:
  [[noreturn]] void fail(ErrorKind kind, std::string_view name, std::string expected,
                         std::string found) const {
    throw Error(kind, {checkpoint_.where(name), std::move(expected), std::move(found), {}});
  }

  Weight weight(const Parts& parts, WeightFormat format) const {
    Weight result;
    result.format = format;
    result.N = N_;
    result.K = K_;
    result.data = parts.data.view;
    result.name = parts.data.name;
    return result;
  }

  Weight plain(const Parts& parts, WeightFormat format) const {
    expect_shape(parts.data, {N_, K_});
    // Scales beside unquantised numbers mean an export that we misread; ignoring them would be a guess.
    for (const auto* scale : {&parts.scale, &parts.decode_scale, &parts.encode_scale})
      if (*scale)
        fail(ErrorKind::kFormat, (*scale)->name,
             "no scale, as the weight is stored as " + std::string(safetensors_name(parts.data.view.dtype())),
             "one");
    return weight(parts, format);
  }

  Weight fp8(const Parts& parts) const {
    expect_shape(parts.data, {N_, K_});
    const Named& scale = require(parts.scale, parts, "weight_scale or weight_scale_inv");
    const Shape blocks{numerics::num_fp8_tiles(N_), numerics::num_fp8_tiles(K_)};
    if (scale.view.rank() == 2 && scale.view.shape() == blocks) {
      if (scale.view.dtype() != DType::kF32) fail_dtype(scale, "F32, BF16 or F16");
      Weight result = weight(parts, WeightFormat::kFp8Block);
      result.scale = scale.view;
      return result;
    }
    if (scale.view.num_elements() == 1) {
      Weight result = weight(parts, WeightFormat::kFp8Tensor);
      result.scale_tensor = positive_number(scale);
      return result;
    }
    if (scale.view.num_elements() == N_)
      fail(ErrorKind::kUnsupported, scale.name,
           "FP8 with one scale for the tensor or for each 128 x 128 block",
           fmt::format("one for each of the {} rows", N_));
    fail(ErrorKind::kFormat, scale.name, fmt::format("one number or shape {}", blocks.to_string()),
         scale.view.shape().to_string());
  }

  Weight fp4(const Parts& parts) const {
    const Named& scale = require(parts.scale, parts, "weight_scale");
    switch (scale.view.dtype()) {
      case DType::kF8E4M3: return nvfp4(parts, scale);
      case DType::kF8E8M0:
      case DType::kU8: return mxfp4(parts, scale);
      default:
        fail(ErrorKind::kUnsupported, scale.name, "block scales as F8_E4M3 (NVFP4) or F8_E8M0 or U8 (MXFP4)",
             std::string(safetensors_name(scale.view.dtype())));
    }
  }

  Weight nvfp4(const Parts& parts, const Named& scale) const {
    Weight result = fp4_blocks(parts, scale, WeightFormat::kNvfp4, numerics::kNvfp4Block, DType::kF8E4M3);
    if (parts.encode_scale && parts.decode_scale)
      fail(ErrorKind::kFormat, parts.encode_scale->name, "one of weight_scale_2 and weight_global_scale",
           "both");
    if (parts.encode_scale) {
      result.scale_tensor = reciprocal_number(*parts.encode_scale);
    } else {
      result.scale_tensor =
          number(require(parts.decode_scale, parts, "weight_scale_2 or weight_global_scale"));
    }
    if (parts.input_encode)
      result.input_scale = reciprocal_number(*parts.input_encode);
    else if (parts.input_decode)
      result.input_scale = positive_number(*parts.input_decode);
    return result;
  }

  Weight mxfp4(const Parts& parts, const Named& scale) const {
    return fp4_blocks(parts, scale, WeightFormat::kMxfp4, numerics::kMxfp4Block, DType::kF8E8M0);
  }

  Weight fp4_blocks(const Parts& parts, const Named& scale, WeightFormat format, int64_t block,
                    DType scale_dtype) const {
    if (K_ % block != 0)
      fail(ErrorKind::kUnsupported, parts.data.name,
           fmt::format("a reduction dimension divisible by the block of {}", block), fmt::format("{}", K_));
    expect_shape(parts.data, {N_, K_ / 2});
    expect_shape(scale, {N_, K_ / block});
    Weight result = weight(parts, format);
    result.data = TensorView(parts.data.view.data(), DType::kF4E2M1x2, parts.data.view.shape());
    result.scale = TensorView(scale.view.data(), scale_dtype, scale.view.shape());
    return result;
  }

  void expect_shape(const Named& tensor, const Shape& expected) const {
    if (!(tensor.view.shape() == expected))
      fail(ErrorKind::kFormat, tensor.name, "shape " + expected.to_string(), tensor.view.shape().to_string());
  }

  const Named& require(const std::optional<Named>& tensor, const Parts& parts, std::string_view names) const {
    if (!tensor)
      fail(ErrorKind::kFormat, parts.data.name, fmt::format("a scale beside it ({})", names), "none");
    return *tensor;
  }

  [[noreturn]] void fail_dtype(const Named& tensor, std::string expected) const {
    fail(ErrorKind::kFormat, tensor.name, std::move(expected),
         std::string(safetensors_name(tensor.view.dtype())));
  }

  // A scale of a tensor: finite and not negative.
  float number(const Named& tensor) const {
    if (tensor.view.num_elements() != 1)
      fail(ErrorKind::kFormat, tensor.name, "one number", "shape " + tensor.view.shape().to_string());
    float value = 0;
    switch (tensor.view.dtype()) {
      case DType::kF32: value = *tensor.view.data_as<float>(); break;
      case DType::kBF16: value = numerics::from_bf16(*tensor.view.data_as<uint16_t>()); break;
      case DType::kF16: value = numerics::from_fp16(*tensor.view.data_as<uint16_t>()); break;
      default: fail_dtype(tensor, "F32, BF16 or F16");
    }
    if (!std::isfinite(value) || value < 0)
      fail(ErrorKind::kFormat, tensor.name, "a finite scale, not negative", fmt::format("{}", value));
    return value;
  }

  float positive_number(const Named& tensor) const {
    const float value = number(tensor);
    if (value == 0) fail(ErrorKind::kFormat, tensor.name, "a positive scale", "0");
    return value;
  }

  float reciprocal_number(const Named& tensor) const {
    const numerics::EncodeScale scale{positive_number(tensor)};
    const float value = numerics::decode_scale(scale).value;
    if (!std::isfinite(value))
      fail(ErrorKind::kFormat, tensor.name, "a scale with a finite reciprocal",
           fmt::format("{}", scale.value));
    return value;
  }

  const Checkpoint& checkpoint_;
  int64_t N_, K_;
};

std::optional<Named> find_named(const Checkpoint& checkpoint, std::string name) {
  if (!checkpoint.has(name)) return std::nullopt;
  TensorView view = checkpoint.at(name);
  return Named{std::move(name), view};
}

// The tensors beside `data`: `base` is "...gate_proj." for a module, "...gate_up_proj_" for fused experts.
Parts find_parts(const Checkpoint& checkpoint, Named data, const std::string& base) {
  const auto find = [&](const char* name) { return find_named(checkpoint, base + name); };
  Parts parts{.data = std::move(data),
              .scale = find("weight_scale"),
              .decode_scale = find("weight_scale_2"),
              .encode_scale = find("weight_global_scale"),
              .input_decode = find("input_scale"),
              .input_encode = find("input_global_scale")};
  for (const char* name : {"weight_scale_inv", "scale_inv"})
    if (!parts.scale) parts.scale = find(name);
  // compressed-tensors stores the scales of FP8 blocks in the type of the model.
  if (parts.scale && (parts.scale->view.dtype() == DType::kBF16 || parts.scale->view.dtype() == DType::kF16))
    parts.scale->view = checkpoint.at_f32(parts.scale->name, parts.scale->view.shape());
  return parts;
}

// Fused experts: cuts Parts of all E down to the rows [begin, end) of one.
class FusedParts {
 public:
  // num_rows: of one expert, all matrices that are fused.
  FusedParts(const Checkpoint& checkpoint, const std::string& name, int64_t E, int64_t num_rows)
      : all_(find_parts(checkpoint, {name, checkpoint.at(name)}, name + "_")), E_(E), num_rows_(num_rows) {
    const TensorView& data = all_.data.view;
    if (data.rank() != 3 || data.dim(0) != E || data.dim(1) != num_rows)
      throw Error(ErrorKind::kFormat, {.where = checkpoint.where(name),
                                       .expected = fmt::format("shape [{}, {}, *]", E, num_rows),
                                       .found = data.shape().to_string(),
                                       .mend = {}});
  }

  Parts expert(int64_t e, int64_t begin, int64_t end) const {
    Parts parts = all_;
    parts.data.view = rows(expert_of(parts.data.view, e), begin, end);
    if (parts.scale) parts.scale->view = rows(expert_of(parts.scale->view, e), begin, end);
    for (auto* scale : {&parts.decode_scale, &parts.encode_scale, &parts.input_decode, &parts.input_encode})
      if (*scale) (*scale)->view = expert_of((*scale)->view, e);
    return parts;
  }

  bool has_fp8_blocks() const {
    return all_.data.view.dtype() == DType::kF8E4M3 && all_.scale && all_.scale->view.rank() == 3;
  }

 private:
  // A number that all experts share stays as it is; what does not fit is left for the reader to refuse.
  TensorView expert_of(const TensorView& tensor, int64_t e) const {
    if (tensor.rank() == 0 || tensor.dim(0) != E_) return tensor;
    return tensor.slice(0, e, e + 1).reshape(Shape(tensor.shape().dims().subspan(1)));
  }

  TensorView rows(const TensorView& tensor, int64_t begin, int64_t end) const {
    if (tensor.rank() != 2 || num_rows_ == 0) return tensor;
    // Blocks of 128 rows have a scale each; the caller sees to it that none straddles two matrices.
    const int64_t rows_per_item = tensor.dim(0) == num_rows_ ? 1 : numerics::kFp8Tile;
    const int64_t end_item = (end + rows_per_item - 1) / rows_per_item;
    return end_item <= tensor.dim(0) ? tensor.slice(0, begin / rows_per_item, end_item) : tensor;
  }

  Parts all_;
  int64_t E_, num_rows_;
};

[[noreturn]] void fail_block_scale(const Checkpoint& checkpoint, const Weight& weight, int64_t row,
                                   int64_t block, float value) {
  throw Error(ErrorKind::kFormat, {.where = checkpoint.where(weight.name),
                                   .expected = "block scales that are finite and not negative",
                                   .found = fmt::format("{} in row {}, block {}", value, row, block),
                                   .mend = {}});
}

// is_good(code) must be cheap: this loop sees every scale of a model.
template <typename T, typename IsGood, typename Value>
void check_blocks(const Checkpoint& checkpoint, const Weight& weight, IsGood is_good, Value value) {
  for (int64_t row = 0; row < weight.scale.dim(0); ++row) {
    const T* codes = weight.scale.row<T>(row);
    const int64_t num_blocks = weight.scale.dim(1);
    int num_bad = 0;
    for (int64_t block = 0; block < num_blocks; ++block) num_bad += is_good(codes[block]) ? 0 : 1;
    for (int64_t block = 0; num_bad != 0 && block < num_blocks; ++block)
      if (!is_good(codes[block])) fail_block_scale(checkpoint, weight, row, block, value(codes[block]));
  }
}

}  // namespace

Weight find_linear(const Checkpoint& checkpoint, std::string_view prefix, int64_t N, int64_t K) {
  const std::string base = std::string(prefix) + ".";
  const std::string packed = base + "weight_packed";
  const std::string name = checkpoint.has(packed) ? packed : base + "weight";
  return Reader(checkpoint, N, K).read(find_parts(checkpoint, {name, checkpoint.at(name)}, base));
}

void check_scales(const Checkpoint& checkpoint, const Weight& weight) {
  switch (weight.format) {
    case WeightFormat::kNvfp4:
      check_blocks<uint8_t>(
          checkpoint, weight, [](uint8_t code) { return code < 0x7f; }, numerics::from_e4m3);
      break;
    case WeightFormat::kMxfp4:
      check_blocks<uint8_t>(
          checkpoint, weight, [](uint8_t code) { return code != numerics::kE8m0Nan; }, numerics::from_e8m0);
      break;
    case WeightFormat::kFp8Block:
      check_blocks<float>(
          checkpoint, weight, [](float scale) { return scale >= 0 && scale <= FLT_MAX; },
          [](float scale) { return scale; });
      break;
    default: break;
  }
}

Weight read_linear(const Checkpoint& checkpoint, std::string_view prefix, int64_t N, int64_t K) {
  Weight weight = find_linear(checkpoint, prefix, N, K);
  check_scales(checkpoint, weight);
  return weight;
}

ops::MoeWeights find_experts(const Checkpoint& checkpoint, std::string_view prefix, int64_t E, int64_t I,
                             int64_t H) {
  ops::MoeWeights experts;
  const std::string fused_gate_up = fmt::format("{}.gate_up_proj", prefix);
  if (!checkpoint.has(fused_gate_up)) {
    for (int64_t e = 0; e < E; ++e) {
      experts.gate.push_back(find_linear(checkpoint, fmt::format("{}.{}.gate_proj", prefix, e), I, H));
      experts.up.push_back(find_linear(checkpoint, fmt::format("{}.{}.up_proj", prefix, e), I, H));
      experts.down.push_back(find_linear(checkpoint, fmt::format("{}.{}.down_proj", prefix, e), H, I));
    }
    return experts;
  }
  const FusedParts gate_up(checkpoint, fused_gate_up, E, 2 * I);
  const FusedParts down(checkpoint, fmt::format("{}.down_proj", prefix), E, H);
  if (gate_up.has_fp8_blocks() && I % numerics::kFp8Tile != 0)
    throw Error(ErrorKind::kUnsupported, {.where = checkpoint.where(fused_gate_up),
                                          .expected = "FP8 blocks that belong to gate or up alone",
                                          .found = fmt::format("an expert width of {}", I),
                                          .mend = {}});
  for (int64_t e = 0; e < E; ++e) {
    experts.gate.push_back(Reader(checkpoint, I, H).read(gate_up.expert(e, 0, I)));
    experts.up.push_back(Reader(checkpoint, I, H).read(gate_up.expert(e, I, 2 * I)));
    experts.down.push_back(Reader(checkpoint, H, I).read(down.expert(e, 0, H)));
  }
  return experts;
}

ops::MoeWeights read_experts(const Checkpoint& checkpoint, std::string_view prefix, int64_t E, int64_t I,
                             int64_t H) {
  ops::MoeWeights experts = find_experts(checkpoint, prefix, E, I, H);
  for (const auto* weights : {&experts.gate, &experts.up, &experts.down})
    for (const Weight& weight : *weights) check_scales(checkpoint, weight);
  return experts;
}

}  // namespace sinter::checkpoint
