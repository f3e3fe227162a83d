#include "checkpoint/scheme.h"

#include <cmath>

#include "model_folder.h"
#include "numerics/bf16.h"
#include "numerics/e4m3.h"

namespace sinter::checkpoint {
namespace {

using ops::Weight;
using ops::WeightFormat;

constexpr uint8_t kOneE4m3 = 0x38;

// A checkpoint of the tensors given.
class Opened {
 public:
  explicit Opened(const TensorSet& set) {
    set.write(folder_.path() / "model.safetensors");
    checkpoint_ = std::make_unique<Checkpoint>(folder_.path());
  }
  const Checkpoint& operator*() const { return *checkpoint_; }

 private:
  ModelFolder folder_;
  std::unique_ptr<Checkpoint> checkpoint_;
};

::testing::AssertionResult refuses(ErrorKind kind, const TensorSet& set, std::vector<std::string_view> parts,
                                   int64_t N = 2, int64_t K = 32) {
  const Opened opened(set);
  return throws(kind, std::move(parts), [&] { read_linear(*opened, "m", N, K); });
}

// ModelOpt's NVFP4 [2, 32] under the name "m", without `missing`.
TensorSet nvfp4(std::string_view missing = "", uint8_t scale = kOneE4m3, float scale_2 = 0.5f,
                float input_scale = 0.25f) {
  TensorSet set;
  if (missing != "weight") set.fill<uint8_t>("m.weight", DType::kU8, {2, 16}, 0x21);
  if (missing != "weight_scale") set.fill<uint8_t>("m.weight_scale", DType::kF8E4M3, {2, 2}, scale);
  if (missing != "weight_scale_2") set.fill<float>("m.weight_scale_2", DType::kF32, {}, scale_2);
  if (missing != "input_scale") set.fill<float>("m.input_scale", DType::kF32, {}, input_scale);
  return set;
}

TEST(Scheme, PlainTypes) {
  for (const auto& [dtype, format] :
       {std::pair{DType::kBF16, WeightFormat::kBF16}, {DType::kF16, WeightFormat::kF16}}) {
    const Opened opened(TensorSet().fill<uint16_t>("m.weight", dtype, {3, 5}, 1));
    const Weight weight = read_linear(*opened, "m", 3, 5);
    EXPECT_EQ(weight.format, format);
    EXPECT_EQ(weight.data.data(), (*opened).at("m.weight").data());
    EXPECT_EQ(weight.name, "m.weight");
  }
  const Opened opened(TensorSet().fill<float>("m.weight", DType::kF32, {3, 5}, 1));
  EXPECT_EQ(read_linear(*opened, "m", 3, 5).format, WeightFormat::kF32);
}

TEST(Scheme, ModelOptNvfp4) {
  const Opened opened(nvfp4());
  const Weight weight = read_linear(*opened, "m", 2, 32);
  EXPECT_EQ(weight.format, WeightFormat::kNvfp4);
  EXPECT_EQ(weight.data.dtype(), DType::kF4E2M1x2);
  EXPECT_EQ(weight.scale.shape(), (Shape{2, 2}));
  EXPECT_EQ(weight.scale_tensor, 0.5f);
  EXPECT_EQ(weight.input_scale, 0.25f);
  const Opened w4a16(nvfp4("input_scale"));
  EXPECT_FALSE(read_linear(*w4a16, "m", 2, 32).input_scale.has_value());
}

TEST(Scheme, CompressedTensorsNvfp4HasReciprocalScales) {
  const Opened opened(TensorSet()
                          .fill<uint8_t>("m.weight_packed", DType::kU8, {2, 16}, 0x21)
                          .fill<uint8_t>("m.weight_scale", DType::kF8E4M3, {2, 2}, kOneE4m3)
                          .fill<float>("m.weight_global_scale", DType::kF32, {1}, 8.0f)
                          .fill<float>("m.input_global_scale", DType::kF32, {1}, 2.0f));
  const Weight weight = read_linear(*opened, "m", 2, 32);
  EXPECT_EQ(weight.format, WeightFormat::kNvfp4);
  EXPECT_EQ(weight.scale_tensor, 0.125f);
  EXPECT_EQ(weight.input_scale, 0.5f);
}

TEST(Scheme, Mxfp4) {
  for (const DType dtype : {DType::kU8, DType::kF8E8M0})
    for (const char* name : {"m.weight", "m.weight_packed"}) {
      const Opened opened(TensorSet()
                              .fill<uint8_t>(name, DType::kU8, {2, 32}, 0x21)
                              .fill<uint8_t>("m.weight_scale", dtype, {2, 2}, 127));
      const Weight weight = read_linear(*opened, "m", 2, 64);
      EXPECT_EQ(weight.format, WeightFormat::kMxfp4);
      EXPECT_EQ(weight.scale.dtype(), DType::kF8E8M0);
    }
}

TEST(Scheme, Fp8OfATensorAndOfBlocks) {
  const Shape shape{130, 200}, blocks{2, 2};
  const auto codes = [&] { return TensorSet().fill<uint8_t>("m.weight", DType::kF8E4M3, shape, kOneE4m3); };
  const Opened tensor(codes().fill<float>("m.weight_scale", DType::kF32, {}, 3.0f));
  EXPECT_EQ(read_linear(*tensor, "m", 130, 200).format, WeightFormat::kFp8Tensor);
  EXPECT_EQ(read_linear(*tensor, "m", 130, 200).scale_tensor, 3.0f);
  for (const char* name : {"m.weight_scale_inv", "m.weight_scale"}) {
    const Opened f32(codes().fill<float>(name, DType::kF32, blocks, 3.0f));
    EXPECT_EQ(read_linear(*f32, "m", 130, 200).format, WeightFormat::kFp8Block);
    const Opened bf16(codes().fill<uint16_t>(name, DType::kBF16, blocks, numerics::to_bf16(3.0f)));
    EXPECT_EQ(read_linear(*bf16, "m", 130, 200).scale.row<float>(1)[1], 3.0f);
  }
  EXPECT_TRUE(refuses(ErrorKind::kFormat, codes().fill<float>("m.weight_scale", DType::kF32, {3, 2}, 1.0f),
                      {"m.weight_scale", "[2, 2]", "found [3, 2]"}, 130, 200));
  EXPECT_TRUE(refuses(ErrorKind::kUnsupported,
                      codes().fill<float>("m.weight_scale", DType::kF32, {130, 1}, 1.0f),
                      {"m.weight_scale", "each of the 130 rows"}, 130, 200));
  EXPECT_TRUE(refuses(ErrorKind::kFormat, codes(), {"m.weight", "weight_scale_inv", "none"}, 130, 200));
  EXPECT_TRUE(refuses(ErrorKind::kFormat, codes().fill<float>("m.weight_scale", DType::kF32, blocks, -1.0f),
                      {"m.weight", "-1 in row 0, block 0"}, 130, 200));
  EXPECT_TRUE(refuses(ErrorKind::kFormat,
                      codes().fill<float>("m.weight_scale", DType::kF32, blocks, INFINITY),
                      {"m.weight", "inf in row 0"}, 130, 200));
}

TEST(Scheme, NamesWhatIsMissing) {
  EXPECT_TRUE(refuses(ErrorKind::kFormat, nvfp4("weight"), {"tensor 'm.weight'", "none"}));
  EXPECT_TRUE(refuses(ErrorKind::kFormat, nvfp4("weight_scale"), {"tensor 'm.weight'", "(weight_scale)"}));
  EXPECT_TRUE(refuses(ErrorKind::kFormat, nvfp4("weight_scale_2"), {"tensor 'm.weight'", "weight_scale_2"}));
}

TEST(Scheme, RefusesBadScales) {
  for (const float bad : {NAN, INFINITY, -1.0f})
    EXPECT_TRUE(refuses(ErrorKind::kFormat, nvfp4("", kOneE4m3, bad), {"'m.weight_scale_2'", "finite"}))
        << bad;
  for (const float bad : {NAN, INFINITY, -1.0f, 0.0f})
    EXPECT_TRUE(refuses(ErrorKind::kFormat, nvfp4("", kOneE4m3, 1.0f, bad), {"'m.input_scale'", "scale"}))
        << bad;
  EXPECT_TRUE(refuses(ErrorKind::kFormat, nvfp4("", 0x7f), {"'m.weight'", "nan in row 0, block 0"}));
  EXPECT_TRUE(refuses(ErrorKind::kFormat, nvfp4("", 0xff), {"'m.weight'", "nan"}));
  EXPECT_TRUE(
      refuses(ErrorKind::kFormat, nvfp4("", 0x80 | kOneE4m3), {"'m.weight'", "-1 in row 0, block 0"}));
  const TensorSet tiny = TensorSet()
                             .fill<uint8_t>("m.weight_packed", DType::kU8, {2, 16}, 0)
                             .fill<uint8_t>("m.weight_scale", DType::kF8E4M3, {2, 2}, kOneE4m3)
                             .fill<float>("m.weight_global_scale", DType::kF32, {1}, 1e-45f);
  EXPECT_TRUE(refuses(ErrorKind::kFormat, tiny, {"'m.weight_global_scale'", "finite reciprocal"}));
  const TensorSet nan_mx = TensorSet()
                               .fill<uint8_t>("m.weight", DType::kU8, {2, 16}, 0)
                               .fill<uint8_t>("m.weight_scale", DType::kU8, {2, 1}, 0xff);
  EXPECT_TRUE(refuses(ErrorKind::kFormat, nan_mx, {"'m.weight'", "nan in row 0"}));
}

TEST(Scheme, RefusesOneBadBlockScaleAmongMany) {
  std::vector<uint8_t> scales(2 * 64, kOneE4m3);
  scales[64 + 37] = 0xc0;
  const TensorSet set = TensorSet()
                            .fill<uint8_t>("m.weight", DType::kU8, {2, 512}, 0)
                            .add<uint8_t>("m.weight_scale", DType::kF8E4M3, {2, 64}, scales)
                            .fill<float>("m.weight_scale_2", DType::kF32, {1}, 1.0f);
  EXPECT_TRUE(refuses(ErrorKind::kFormat, set, {"'m.weight'", "-2 in row 1, block 37"}, 2, 1024));
}

TEST(Scheme, RefusesOtherShapesAndTypes) {
  EXPECT_TRUE(refuses(ErrorKind::kFormat, nvfp4(), {"'m.weight'", "[4, 16]", "found [2, 16]"}, 4, 32));
  EXPECT_TRUE(refuses(ErrorKind::kFormat, nvfp4(), {"'m.weight'", "[2, 32]", "found [2, 16]"}, 2, 64));
  EXPECT_TRUE(refuses(ErrorKind::kUnsupported, nvfp4(), {"'m.weight'", "block of 16", "found 40"}, 2, 40));
  EXPECT_TRUE(refuses(ErrorKind::kUnsupported, TensorSet().fill<uint8_t>("m.weight", DType::kI8, {2, 32}, 1),
                      {"'m.weight'", "found I8"}));
  EXPECT_TRUE(refuses(ErrorKind::kFormat,
                      TensorSet()
                          .fill<uint16_t>("m.weight", DType::kBF16, {2, 32}, 1)
                          .fill<float>("m.weight_scale", DType::kF32, {1}, 1),
                      {"'m.weight_scale'", "no scale", "BF16"}));
  EXPECT_TRUE(refuses(ErrorKind::kFormat, nvfp4().fill<float>("m.weight_global_scale", DType::kF32, {1}, 1),
                      {"'m.weight_global_scale'", "both"}));
  EXPECT_TRUE(refuses(ErrorKind::kFormat,
                      nvfp4("weight_scale_2").fill<float>("m.weight_scale_2", DType::kF32, {2}, 1),
                      {"'m.weight_scale_2'", "one number", "[2]"}));
}

// Element (e, row, k) is told by its value.
float value_at(int64_t e, int64_t row, int64_t k) { return static_cast<float>(e * 10000 + row * 100 + k); }

std::vector<float> experts_of(int64_t E, int64_t rows, int64_t columns) {
  std::vector<float> values;
  for (int64_t e = 0; e < E; ++e)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t k = 0; k < columns; ++k) values.push_back(value_at(e, row, k));
  return values;
}

TEST(Scheme, FusedExpertsAreCutInPlace) {
  const int64_t E = 3, I = 4, H = 6;
  const Opened opened(TensorSet()
                          .add<float>("x.gate_up_proj", DType::kF32, {E, 2 * I, H}, experts_of(E, 2 * I, H))
                          .add<float>("x.down_proj", DType::kF32, {E, H, I}, experts_of(E, H, I)));
  const ops::MoeWeights experts = read_experts(*opened, "x", E, I, H);
  ASSERT_EQ(experts.gate.size(), 3u);
  for (int64_t e = 0; e < E; ++e) {
    EXPECT_EQ(experts.gate[e].data.row<float>(1)[2], value_at(e, 1, 2));
    EXPECT_EQ(experts.up[e].data.row<float>(1)[2], value_at(e, I + 1, 2));
    EXPECT_EQ(experts.down[e].data.row<float>(5)[3], value_at(e, 5, 3));
  }
  EXPECT_TRUE(throws(ErrorKind::kFormat, {"'x.gate_up_proj'", "[4, 8, *]", "[3, 8, 6]"},
                     [&] { read_experts(*opened, "x", 4, I, H); }));
  EXPECT_TRUE(throws(ErrorKind::kFormat, {"'x.down_proj'", "[3, 7, *]", "[3, 6, 4]"},
                     [&] { read_experts(*opened, "x", E, I, 7); }));
}

TEST(Scheme, FusedNvfp4Experts) {
  const int64_t E = 2, I = 16, H = 32;
  std::vector<uint8_t> scales;
  for (int64_t i = 0; i < E * 2 * I * H / 16; ++i) scales.push_back(static_cast<uint8_t>(i % 0x70));
  const Opened opened(
      TensorSet()
          .fill<uint8_t>("x.gate_up_proj", DType::kU8, {E, 2 * I, H / 2}, 0x21)
          .add<uint8_t>("x.gate_up_proj_weight_scale", DType::kF8E4M3, {E, 2 * I, H / 16}, scales)
          .add<float>("x.gate_up_proj_weight_scale_2", DType::kF32, {E}, {0.5f, 0.25f})
          .fill<float>("x.gate_up_proj_input_scale", DType::kF32, {}, 2.0f)
          .fill<uint8_t>("x.down_proj", DType::kU8, {E, H, I / 2}, 0x21)
          .fill<uint8_t>("x.down_proj_weight_scale", DType::kF8E4M3, {E, H, I / 16}, kOneE4m3)
          .add<float>("x.down_proj_weight_scale_2", DType::kF32, {E, 1, 1}, {1.0f, 2.0f}));
  const ops::MoeWeights experts = read_experts(*opened, "x", E, I, H);
  EXPECT_EQ(experts.gate[1].format, WeightFormat::kNvfp4);
  EXPECT_EQ(experts.gate[0].scale_tensor, 0.5f);
  EXPECT_EQ(experts.up[1].scale_tensor, 0.25f);
  EXPECT_EQ(experts.up[1].input_scale, 2.0f);
  EXPECT_EQ(experts.up[1].scale.row<uint8_t>(3)[1], scales[(1 * 2 * I + I + 3) * H / 16 + 1]);
  EXPECT_EQ(experts.down[1].scale_tensor, 2.0f);
}

TEST(Scheme, FusedFp8BlocksMustNotStraddleGateAndUp) {
  const int64_t E = 2, I = 128, H = 130;
  const auto set = [&](int64_t width) {
    std::vector<float> scales;
    for (int64_t i = 0; i < E * ((2 * width + 127) / 128) * 2; ++i) scales.push_back(static_cast<float>(i));
    return TensorSet()
        .fill<uint8_t>("x.gate_up_proj", DType::kF8E4M3, {E, 2 * width, H}, kOneE4m3)
        .add<float>("x.gate_up_proj_scale_inv", DType::kF32, {E, (2 * width + 127) / 128, 2}, scales)
        .fill<uint8_t>("x.down_proj", DType::kF8E4M3, {E, H, width}, kOneE4m3)
        .fill<float>("x.down_proj_scale_inv", DType::kF32, {E, 2, (width + 127) / 128}, 1.0f);
  };
  const Opened opened(set(I));
  const ops::MoeWeights experts = read_experts(*opened, "x", E, I, H);
  EXPECT_EQ(experts.up[1].format, WeightFormat::kFp8Block);
  EXPECT_EQ(experts.up[1].scale.shape(), (Shape{1, 2}));
  EXPECT_EQ(experts.up[1].scale.row<float>(0)[1], 7.0f);
  EXPECT_EQ(experts.down[0].scale.shape(), (Shape{2, 1}));
  const Opened straddling(set(100));
  EXPECT_TRUE(throws(ErrorKind::kUnsupported, {"'x.gate_up_proj'", "100"},
                     [&] { read_experts(*straddling, "x", E, 100, H); }));
}

TEST(Scheme, SeparateExpertsMayDiffer) {
  TensorSet set;
  for (const char* part : {"gate_proj", "up_proj", "down_proj"}) {
    const std::string name = std::string("x.0.") + part;
    set.fill<uint8_t>(name + ".weight", DType::kU8, {32, 16}, 0)
        .fill<uint8_t>(name + ".weight_scale", DType::kF8E4M3, {32, 2}, kOneE4m3)
        .fill<float>(name + ".weight_scale_2", DType::kF32, {1}, part[0] == 'g' ? 1.0f : 2.0f);
    set.fill<uint16_t>(std::string("x.1.") + part + ".weight", DType::kBF16, {32, 32}, 0);
  }
  const Opened opened(set);
  const ops::MoeWeights experts = read_experts(*opened, "x", 2, 32, 32);
  EXPECT_EQ(experts.gate[0].scale_tensor, 1.0f);
  EXPECT_EQ(experts.up[0].scale_tensor, 2.0f);
  EXPECT_EQ(ops::common_format(experts.gate), WeightFormat::kMixed);
  EXPECT_TRUE(
      throws(ErrorKind::kFormat, {"'x.2.gate_proj.weight'"}, [&] { read_experts(*opened, "x", 3, 32, 32); }));
}

}  // namespace
}  // namespace sinter::checkpoint
