#include "workbench/checkpoint_writer.h"

#include <cmath>

#include "model_configs.h"
#include "models/weights/dequantize.h"
#include "workbench/plan_weights.h"
#include "workbench/synth.h"

namespace sinter::workbench {
namespace {

std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

TEST(CheckpointWriter, ShardsAreCutAtTensorsAndReadBack) {
  const TemporaryFolder folder(tiny_config());
  std::vector<float> values(40);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  // 40, 80 and 40 bytes: the second does not fit beside the first, the third does not fit beside it.
  CheckpointWriter writer(
      folder.path(),
      {{"a", DType::kF32, Shape{10}}, {"b", DType::kF32, Shape{2, 10}}, {"c", DType::kF32, Shape{10}}}, {},
      /*shard_bytes=*/100);
  EXPECT_EQ(writer.num_shards(), 3);
  // In pieces that know nothing of tensors.
  for (size_t begin = 0; begin < values.size(); begin += 7)
    writer.append(bytes_of(values).subspan(4 * begin, 4 * std::min<size_t>(7, values.size() - begin)));
  writer.finish();

  const checkpoint::Checkpoint checkpoint(folder.path());
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "model.safetensors.index.json"));
  EXPECT_EQ(checkpoint.find("b")->file->path().filename(), "model-00002-of-00003.safetensors");
  EXPECT_EQ(checkpoint.at("a", Shape{10}).data_as<float>()[9], 9);
  EXPECT_EQ(checkpoint.at("b", Shape{2, 10}).data_as<float>()[19], 29);
  EXPECT_EQ(checkpoint.at("c", Shape{10}).data_as<float>()[0], 30);
}

TEST(CheckpointWriter, WhatIsNotFinishedLeavesNoFile) {
  const TemporaryFolder folder;
  { CheckpointWriter writer(folder.path(), {{"a", DType::kF32, Shape{10}}}, {}); }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(CheckpointWriter, FormatsThatCannotHoldAMatrixAreRefused) {
  const models::TensorSpec matrix{.name = "m", .N = 4, .K = 24};
  EXPECT_EQ(error_of([&] { stored_tensors(matrix, ops::WeightFormat::kNvfp4); }).kind(),
            ErrorKind::kUnsupported);
  EXPECT_EQ(error_of([&] { stored_tensors(matrix, ops::WeightFormat::kMxfp4); }).kind(),
            ErrorKind::kUnsupported);
  EXPECT_EQ(stored_tensors(matrix, ops::WeightFormat::kFp8Block).at(1).shape, (Shape{1, 1}));
}

class SynthFormat : public testing::TestWithParam<std::string> {};

TEST_P(SynthFormat, OutputsHaveTheVarianceOfInputs) {
  const TemporaryFolder source(tiny_config()), target;
  const std::filesystem::path out = target.path() / "out";
  const ModelFolder config = open_model_folder(source.str());
  const StoreMap store = parse_store("all=" + GetParam());
  synthesize(config, {.out = out, .seed = 1, .store = store, .num_layers = 0, .progress = {}});

  const ModelFolder made = open_model_folder(out.string());
  PlanWeights weights(made.checkpoint, made.spec);
  double sum = 0, sum_of_squares = 0, count = 0;
  for (const models::TensorSpec& tensor : models::tensor_plan(made.spec)) {
    if (tensor.kind != models::TensorSpec::Kind::kLinear) continue;
    const ops::Weight weight = weights.find(tensor);
    ASSERT_EQ(name(weight.format), GetParam());
    std::vector<float> row(static_cast<size_t>(weight.K));
    for (int64_t n = 0; n < weight.N; ++n) {
      models::dequantize_row(weight, n, row);
      for (const float value : row) {
        const double scaled = static_cast<double>(value) * std::sqrt(static_cast<double>(weight.K));
        sum += scaled;
        sum_of_squares += scaled * scaled;
        ++count;
      }
    }
  }
  EXPECT_NEAR(sum / count, 0, 0.02);
  // Powers of two are all the scale that MXFP4 has.
  const double tolerance = GetParam() == "mxfp4" ? 0.9 : 0.03;
  EXPECT_NEAR(sum_of_squares / count, 1, tolerance);
}

INSTANTIATE_TEST_SUITE_P(Formats, SynthFormat,
                         testing::Values("nvfp4", "mxfp4", "fp8", "fp8_block", "bf16", "f16", "f32"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace sinter::workbench
