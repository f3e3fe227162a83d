// Loading: what is missing, of the wrong shape or of an unknown kind is named; accepted variants compute the
// same.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "engine/generator.h"
#include "models/tiny_checkpoint.h"
#include "models/weights/dequantize.h"

namespace sinter::models {
namespace {

const std::vector<int32_t> kIds{3, 141, 59, 26, 53, 58, 97, 93, 23, 84, 62, 64, 33};

std::vector<float> logits_of(TinyCheckpoint& tiny, const dispatch::Options& options = {.reference = true}) {
  LoadedModel loaded(tiny.write(), options);
  std::vector<float> logits;
  engine::score_tokens(*loaded.model, kIds, 64, [&](int64_t, std::span<const float> row) {
    logits.insert(logits.end(), row.begin(), row.end());
  });
  return logits;
}

TEST(Weights, EveryDefectNamesTheTensor) {
  struct Case {
    std::function<void(TinyCheckpoint&)> damage;
    const char* tensor;
  };
  const auto reshape = [](const char* name, const Shape& shape) {
    return [=](TinyCheckpoint& tiny) { tiny.entry(name).spec.shape = shape; };
  };
  const char* const kNorm = "model.layers.1.self_attn.kv_a_layernorm.weight";
  const std::vector<Case> cases{
      {[&](TinyCheckpoint& tiny) { tiny.remove(kNorm); }, kNorm},
      {[](TinyCheckpoint& tiny) { tiny.remove("lm_head.weight"); }, "lm_head"},
      {[](TinyCheckpoint& tiny) { tiny.remove("model.layers.1.mlp.experts.5.up_proj.weight"); },
       "model.layers.1.mlp.experts.5.up_proj"},
      {[](TinyCheckpoint& tiny) { tiny.remove("model.layers.1.mlp.experts.5.up_proj.weight_scale"); },
       "experts.5.up_proj"},
      {reshape("model.layers.0.self_attn.o_proj.weight", {64, 128}), "model.layers.0.self_attn.o_proj"},
      {[](TinyCheckpoint& tiny) { tiny.config()["vocab_size"] = 300; }, "model.embed_tokens.weight"},
      {[](TinyCheckpoint& tiny) {
         tiny.config()["num_hidden_layers"] = 4, tiny.config().erase("indexer_types");
       },
       "model.layers.2.self_attn.indexer"},
      {[](TinyCheckpoint& tiny) {
         tiny.entry("model.embed_tokens.weight").spec.dtype = DType::kF8E4M3,
         tiny.entry("model.embed_tokens.weight").bytes.resize(256 * 128);
       },
       "model.embed_tokens.weight"},
  };
  for (const Case& c : cases) {
    TinyCheckpoint tiny(tiny_glm_config());
    c.damage(tiny);
    const Error error = error_of([&] { LoadedModel(tiny.write()); });
    EXPECT_TRUE(error.kind() == ErrorKind::kFormat || error.kind() == ErrorKind::kUnsupported)
        << error.what();
    EXPECT_NE(std::string(error.what()).find(c.tensor), std::string::npos) << error.what();
  }
}

// What a config.json that tells too little leaves over.
TEST(Weights, TensorsThatTheModelDoesNotReadAreNamed) {
  const auto add_copy = [](TinyCheckpoint& tiny, const char* of, const char* name) {
    TinyCheckpoint::Entry copy = tiny.entry(of);
    copy.spec.name = name;
    tiny.entries().push_back(std::move(copy));
  };
  const char* const kBias = "model.layers.0.self_attn.o_proj.bias";
  const char* const kNorm = "model.layers.0.input_layernorm.weight";
  struct Case {
    std::function<void(TinyCheckpoint&)> damage;
    const char* tensor;
  };
  const std::vector<Case> wrong{
      {[](TinyCheckpoint& tiny) {
         tiny.config()["num_hidden_layers"] = 2, tiny.config()["indexer_types"] = {"full", "full"};
         tiny.config()["num_nextn_predict_layers"] = 1;  // layer 2 is no such layer
       },
       "model.layers.2."},
      {[](TinyCheckpoint& tiny) { tiny.config()["n_shared_experts"] = 0; }, "shared_experts"},
      {[](TinyCheckpoint& tiny) { tiny.config()["n_routed_experts"] = 7; }, "experts.7."},
      {[](TinyCheckpoint& tiny) { tiny.config()["tie_word_embeddings"] = true; }, "lm_head.weight"},
      {[&](TinyCheckpoint& tiny) { add_copy(tiny, kNorm, kBias); }, kBias},
      {[&](TinyCheckpoint& tiny) { add_copy(tiny, kNorm, "model.layers.0.mlp.up_proj.weight_zero_point"); },
       "weight_zero_point"},
  };
  for (const Case& c : wrong) {
    TinyCheckpoint tiny(tiny_glm_config());
    c.damage(tiny);
    const Error error = error_of([&] { LoadedModel(tiny.write()); });
    EXPECT_EQ(error.kind(), ErrorKind::kFormat) << error.what();
    EXPECT_NE(std::string(error.what()).find(c.tensor), std::string::npos) << error.what();
  }

  TinyCheckpoint tiny(tiny_glm_config());
  const std::vector<float> expected = logits_of(tiny);
  for (const char* name :
       {"model.layers.0.self_attn.kv_b_proj.k_scale", "model.layers.0.self_attn.o_proj.input_scale",
        "model.layers.1.self_attn.rotary_emb.inv_freq", "model.layers.3.eh_proj.weight",
        "model.layers.3.shared_head.norm.weight", "model.layers.3.embed_tokens.weight"})
    add_copy(tiny, kNorm, name);
  EXPECT_EQ(logits_of(tiny), expected);

  TinyCheckpoint tied(tiny_qwen_config());
  const std::vector<float> without_copy = logits_of(tied);
  add_copy(tied, "model.embed_tokens.weight", "lm_head.weight");
  EXPECT_EQ(logits_of(tied), without_copy);
}

TEST(Weights, NanInAWeightIsNotComputedWith) {
  TinyCheckpoint tiny(tiny_glm_config());
  const uint16_t nan = 0x7fc0;
  std::memcpy(tiny.entry("model.norm.weight").bytes.data() + 2, &nan, sizeof nan);
  const Error scored = error_of([&] { logits_of(tiny); });
  EXPECT_EQ(scored.kind(), ErrorKind::kFormat);
  EXPECT_NE(std::string(scored.what()).find("logits of position 0"), std::string::npos) << scored.what();

  LoadedModel loaded(tiny.write());
  engine::Generator generator(*loaded.model, loaded.context, {.context = 32});
  engine::GenerateRequest request;
  request.prompt = kIds;
  request.max_new_tokens = 2;
  const Error generated = error_of([&] { generator.generate(request); });
  EXPECT_EQ(generated.kind(), ErrorKind::kFormat);
  EXPECT_NE(std::string(generated.what()).find("logits of position 12"), std::string::npos)
      << generated.what();
}

TEST(Weights, FolderWithoutTensorsIsRefused) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "config.json") << tiny_glm_config().dump();
  EXPECT_EQ(error_of([&] { LoadedModel(folder.path()); }).kind(), ErrorKind::kFile);
}

TEST(Weights, PackedAndInPlaceAgree) {
  TinyCheckpoint tiny(tiny_glm_config());
  const std::vector<float> packed = logits_of(tiny, {.pack_weights = true});
  const std::vector<float> in_place = logits_of(tiny, {.pack_weights = false});
  for (size_t i = 0; i < packed.size(); ++i) ASSERT_NEAR(packed[i], in_place[i], 0.05) << i;
}

// PREFIX.gate_up_proj [E, 2I, H] and PREFIX.down_proj [E, H, I] in bf16 are the per-expert matrices.
TEST(Weights, FusedExpertsAreTheSeparateOnes) {
  Json config = tiny_qwen_config();
  TinyCheckpoint separate(config);
  constexpr int64_t E = 8, I = 64, H = 128;
  for (auto& entry : separate.entries()) {  // not quantised: bf16 of the dequantised would do as well
    if (!entry.spec.name.ends_with("_proj.weight") || entry.spec.dtype != DType::kU8) continue;
    const int64_t N = entry.spec.shape[0], K = entry.spec.shape[1] * 2;
    entry.spec.dtype = DType::kBF16;
    entry.spec.shape = {N, K};
    std::vector<uint16_t> bits(static_cast<size_t>(N * K));
    for (size_t i = 0; i < bits.size(); ++i)
      bits[i] = numerics::to_bf16(0.01f * static_cast<float>((i * 37 + entry.spec.name.size() * 11 +
                                                              static_cast<size_t>(entry.spec.name[26])) %
                                                             19) -
                                  0.09f);
    entry.bytes.resize(bits.size() * 2);
    std::memcpy(entry.bytes.data(), bits.data(), entry.bytes.size());
  }
  std::erase_if(separate.entries(),
                [](const auto& entry) { return entry.spec.name.find("weight_scale") != std::string::npos; });
  const std::vector<float> expected = logits_of(separate);

  for (int layer = 0; layer < 2; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.mlp.experts.", layer);
    TinyCheckpoint::Entry gate_up{{prefix + "gate_up_proj", DType::kBF16, {E, 2 * I, H}}, {}};
    TinyCheckpoint::Entry down{{prefix + "down_proj", DType::kBF16, {E, H, I}}, {}};
    for (int expert = 0; expert < E; ++expert)
      for (const char* which : {"gate_proj", "up_proj", "down_proj"}) {
        const std::string name = fmt::format("{}{}.{}.weight", prefix, expert, which);
        const std::vector<std::byte> bytes = separate.entry(name).bytes;
        auto& fused = which == std::string_view("down_proj") ? down : gate_up;
        fused.bytes.insert(fused.bytes.end(), bytes.begin(), bytes.end());
        separate.remove(name);
      }
    separate.entries().push_back(std::move(gate_up));
    separate.entries().push_back(std::move(down));
  }
  EXPECT_EQ(logits_of(separate), expected);
}

// A head tied to the embedding is the embedding.
TEST(Weights, TiedHeadIsTheEmbedding) {
  TinyCheckpoint tiny(tiny_qwen_config());
  const std::vector<float> tied = logits_of(tiny);
  TinyCheckpoint::Entry head = tiny.entry("model.embed_tokens.weight");
  head.spec.name = "lm_head.weight";
  tiny.entries().push_back(head);
  tiny.config()["tie_word_embeddings"] = false;
  EXPECT_EQ(logits_of(tiny), tied);
}

TEST(Weights, ProgressEndsNearTheTotal) {
  TinyCheckpoint tiny(tiny_glm_config());
  const checkpoint::Checkpoint checkpoint(tiny.write());
  ThreadPool pool(1);
  dispatch::Context context(host_device(), pool);
  int64_t last = 0, total = 0;
  const auto model = load_model(checkpoint, context, {.report = [&](int64_t done, int64_t of) {
                                  EXPECT_GE(done, last);
                                  last = done, total = of;
                                }});
  EXPECT_GT(last, total * 95 / 100);
  EXPECT_LE(last, total);
}

TEST(Weights, RowsOfEveryFormatAreDecoded) {
  const std::vector<uint16_t> bf16{0x3f80, 0xc000};  // 1, -2
  const std::vector<uint16_t> f16{0x3c00, 0xc000};   // 1, -2
  std::vector<float> values(2);
  ops::Weight weight{.format = ops::WeightFormat::kBF16,
                     .N = 1,
                     .K = 2,
                     .data = TensorView(static_cast<const void*>(bf16.data()), DType::kBF16, {1, 2}),
                     .scale = {},
                     .scale_tensor = 1,
                     .input_scale = {},
                     .name = "w"};
  dequantize_row(weight, 0, values);
  EXPECT_EQ(values, (std::vector<float>{1, -2}));
  weight.format = ops::WeightFormat::kF16;
  weight.data = TensorView(static_cast<const void*>(f16.data()), DType::kF16, {1, 2});
  dequantize_row(weight, 0, values);
  EXPECT_EQ(values, (std::vector<float>{1, -2}));

  // Tiles of 128 x 128, the last one cut: row 129 uses the second row of scales.
  std::vector<uint8_t> codes(130 * 130, 0x38);  // 1
  const std::vector<float> tile_scales{1, 2, 3, 4};
  weight = {.format = ops::WeightFormat::kFp8Block,
            .N = 130,
            .K = 130,
            .data = TensorView(codes.data(), DType::kF8E4M3, {130, 130}),
            .scale = TensorView(static_cast<const void*>(tile_scales.data()), DType::kF32, {2, 2}),
            .scale_tensor = 1,
            .input_scale = {},
            .name = "w"};
  values.resize(130);
  dequantize_row(weight, 129, values);
  EXPECT_EQ(values[0], 3);
  EXPECT_EQ(values[127], 3);
  EXPECT_EQ(values[128], 4);
}

}  // namespace
}  // namespace sinter::models
