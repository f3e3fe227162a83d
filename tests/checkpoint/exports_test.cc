// Checkpoints that other packages wrote (tools/export_modelopt.py, tools/export_compressed_tensors.py): what
// we read of them against the weights that those packages dequantise.
#include <cmath>

#include "checkpoint/scheme.h"
#include "model_folder.h"
#include "numerics/fp8.h"
#include "numerics/nvfp4.h"

namespace sinter::checkpoint {
namespace {

using ops::Weight;
using ops::WeightFormat;

std::vector<float> dequantize(const Weight& weight) {
  std::vector<float> values(static_cast<size_t>(weight.N * weight.K));
  const std::span codes(static_cast<const uint8_t*>(weight.data.data()),
                        static_cast<size_t>(weight.data.size_bytes()));
  if (weight.format == WeightFormat::kNvfp4) {
    const std::span scales(static_cast<const uint8_t*>(weight.scale.data()),
                           static_cast<size_t>(weight.scale.size_bytes()));
    numerics::dequantize_nvfp4(codes, scales, {weight.scale_tensor}, values);
  } else if (weight.format == WeightFormat::kFp8Block) {
    const std::span scales(weight.scale.data_as<float>(), static_cast<size_t>(weight.scale.num_elements()));
    numerics::dequantize_fp8_tiles(codes, scales, weight.N, weight.K, values);
  } else {
    numerics::dequantize_fp8(codes, weight.scale_tensor, values);
  }
  return values;
}

struct Export {
  const char* folder;
  WeightFormat attention, experts;
  bool has_input_scale;
};

class ExportTest : public ::testing::TestWithParam<Export> {};

TEST_P(ExportTest, DequantisesToTheSameWeights) {
  const std::filesystem::path folder =
      std::filesystem::path(SINTER_SOURCE_DIR "/tests/golden/exports") / GetParam().folder;
  const Checkpoint checkpoint(folder);
  EXPECT_NE(checkpoint.quantization_config(), nullptr);
  const SafetensorsFile reference(folder / "reference/weights.safetensors");
  EXPECT_EQ(reference.header().tensors.size(), 5u);
  for (const TensorEntry& entry : reference.header().tensors) {
    SCOPED_TRACE(entry.name);
    const Weight weight = read_linear(checkpoint, entry.name, entry.shape[0], entry.shape[1]);
    const bool is_attention = entry.name.find("self_attn") != std::string::npos;
    EXPECT_EQ(name(weight.format), name(is_attention ? GetParam().attention : GetParam().experts));
    if (!is_attention) {
      EXPECT_EQ(weight.input_scale.has_value(), GetParam().has_input_scale);
    }
    const std::vector<float> values = dequantize(weight);
    const float* expected = reference.view(entry).data_as<float>();
    // The packages multiply the scales first: one rounding more.
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], expected[i], 3e-7f * std::abs(expected[i])) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ExportTest,
    ::testing::Values(Export{"modelopt_nvfp4", WeightFormat::kNvfp4, WeightFormat::kNvfp4, true},
                      Export{"modelopt_nvfp4_w4a16", WeightFormat::kNvfp4, WeightFormat::kNvfp4, false},
                      Export{"modelopt_fp8", WeightFormat::kFp8Tensor, WeightFormat::kFp8Tensor, false},
                      Export{"compressed_tensors_nvfp4", WeightFormat::kNvfp4, WeightFormat::kNvfp4, true},
                      Export{"compressed_tensors_mixed", WeightFormat::kFp8Block, WeightFormat::kNvfp4,
                             false}),
    [](const auto& test) { return std::string(test.param.folder); });

// Gate and up of one expert keep their own scales; compressed-tensors does not make them equal.
TEST(Exports, GateAndUpDiffer) {
  const Checkpoint checkpoint(SINTER_SOURCE_DIR "/tests/golden/exports/compressed_tensors_nvfp4");
  const ops::MoeWeights experts = read_experts(checkpoint, "model.layers.1.mlp.experts", 8, 32, 64);
  EXPECT_NE(experts.gate[0].scale_tensor, experts.up[0].scale_tensor);
}

}  // namespace
}  // namespace sinter::checkpoint
