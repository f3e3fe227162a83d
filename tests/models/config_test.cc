// Published configurations and broken ones. Parameter totals are those of the published models.
#include <gtest/gtest.h>

#include <map>

#include "models/tiny_checkpoint.h"
#include "workbench/model_configs.h"

namespace sinter::models {
namespace {

using workbench::published_config;

DecoderSpec read(const Json& config) { return read_decoder_spec(config, "config.json"); }

const MlaSpec& mla(const DecoderSpec& spec) { return std::get<MlaSpec>(spec.attention); }
const GqaSpec& gqa(const DecoderSpec& spec) { return std::get<GqaSpec>(spec.attention); }

std::map<Part, int64_t> parameters(const DecoderSpec& spec) {
  std::map<Part, int64_t> sums;
  for (const TensorSpec& tensor : tensor_plan(spec)) sums[tensor.part] += tensor.num_elements();
  return sums;
}

int64_t total(const std::map<Part, int64_t>& sums) {
  int64_t result = 0;
  for (const auto& [part, sum] : sums) result += sum;
  return result;
}

TEST(Config, ParameterTotalsArePublishedOnes) {
  struct Case {
    const char* model;
    double total_b, routed_b;  // 10^9, as published, to three and two decimals
  };
  for (const Case& c : {Case{"glm-5", 743.911, 724.78},
                        {"deepseek-v3", 671.026, 653.91},
                        {"deepseek-v3.2", 671.878, 653.91},
                        {"kimi-k2", 1026.408, 1014.69},
                        {"glm-4.5-air", 106.852, 99.66},
                        {"glm-4.5", 352.798, 335.96},
                        {"qwen3-30b", 30.532, 28.99},
                        {"qwen3-235b", 235.094, 227.10}}) {
    auto sums = parameters(read(published_config(c.model)));
    EXPECT_NEAR(static_cast<double>(total(sums)) / 1e9, c.total_b, 0.00051) << c.model;
    EXPECT_NEAR(static_cast<double>(sums[Part::kRouted]) / 1e9, c.routed_b, 0.0051) << c.model;
  }
}

// The numbers of one layer times the layers: exact.
TEST(Config, Glm5PartsAreExact) {
  const DecoderSpec spec = read(published_config("glm-5"));
  auto sums = parameters(spec);
  EXPECT_EQ(sums[Part::kAttention], 78 * int64_t{165019648});
  // The LayerNorm of keys counts as a norm.
  EXPECT_EQ(sums[Part::kIndexer], 78 * int64_t{9371904 - 256});
  EXPECT_EQ(sums[Part::kRouted], 75 * 256 * int64_t{37748736});
  EXPECT_EQ(sums[Part::kShared], 75 * int64_t{37748736});
  EXPECT_EQ(sums[Part::kDense], 3 * int64_t{226492416});
  EXPECT_EQ(sums[Part::kRouter], 75 * int64_t{1572864 + 256});
  EXPECT_EQ(sums[Part::kHead], 154880 * int64_t{6144});
  EXPECT_EQ(sums[Part::kEmbedding], sums[Part::kHead]);
  EXPECT_EQ(mla(spec).softmax_scale, 1.0f / 16);
  EXPECT_TRUE(spec.rope.interleaved);
  EXPECT_TRUE(mla(spec).indexer->rope_interleaved);
  EXPECT_EQ(spec.eos_ids, (std::vector<int64_t>{154820, 154827, 154829}));
  EXPECT_EQ(spec.num_mtp_layers, 1);
}

TEST(Config, PlanIsInCheckpointOrderWithShapes) {
  const auto plan = tensor_plan(read(published_config("glm-5")));
  EXPECT_EQ(plan.front().name, "model.embed_tokens.weight");
  EXPECT_EQ(plan.back().name, "lm_head");
  const auto find = [&](std::string_view name) {
    for (const TensorSpec& tensor : plan)
      if (tensor.name == name) return tensor;
    ADD_FAILURE() << name;
    return TensorSpec{};
  };
  const TensorSpec down = find("model.layers.3.mlp.experts.255.down_proj");
  EXPECT_EQ(down.N, 6144);
  EXPECT_EQ(down.K, 2048);
  EXPECT_EQ(down.layer, 3);
  EXPECT_EQ(down.expert, 255);
  EXPECT_EQ(find("model.layers.77.self_attn.kv_b_proj").N, 28672);
  EXPECT_EQ(find("model.layers.0.mlp.gate_proj").N, 12288);
  EXPECT_TRUE(find("model.layers.3.mlp.gate.e_score_correction_bias").is_f32);
}

TEST(Config, RelativesDifferAsPublished) {
  const DecoderSpec v32 = read(published_config("deepseek-v3.2"));
  EXPECT_TRUE(v32.rope.interleaved);
  EXPECT_FALSE(mla(v32).indexer->rope_interleaved) << "halves in the indexer";
  EXPECT_NEAR(mla(v32).softmax_scale, 1.87385 / std::sqrt(192.0), 1e-5);
  EXPECT_EQ(v32.rope.cos_sin_scale(), 1.0f);
  EXPECT_EQ(v32.moe->num_groups, 8);

  const DecoderSpec kimi = read(published_config("kimi-k2"));
  EXPECT_FALSE(mla(kimi).indexer.has_value());
  EXPECT_NEAR(mla(kimi).softmax_scale, 1.81326 / std::sqrt(192.0), 1e-5);
  EXPECT_NEAR(kimi.moe->scale, 2.827, 1e-12);

  const DecoderSpec air = read(published_config("glm-4.5-air"));
  EXPECT_EQ(air.rope.R, 64) << "half of each head";
  EXPECT_FALSE(air.rope.interleaved);
  EXPECT_TRUE(gqa(air).has_bias);
  EXPECT_FALSE(gqa(air).has_qk_norm);
  EXPECT_EQ(air.moe->scoring, ops::RouterScoring::kSigmoid);

  const DecoderSpec qwen = read(published_config("qwen3-30b"));
  EXPECT_EQ(qwen.rope.R, 128);
  EXPECT_TRUE(gqa(qwen).has_qk_norm);
  EXPECT_FALSE(gqa(qwen).has_bias);
  EXPECT_EQ(qwen.moe->scoring, ops::RouterScoring::kSoftmax);
  EXPECT_EQ(qwen.moe->shared_I, 0);
}

TEST(Config, YarnRampKeepsFastAndStretchesSlowFrequencies) {
  const RopeSpec rope = read(published_config("deepseek-v3")).rope;
  const std::vector<float> freq = rope.inv_freq();
  ASSERT_EQ(freq.size(), 32u);
  // theta 10000, original 4096, betas 32 and 1: the ramp is from pair 10 to pair 23.
  for (size_t i = 0; i < 32; ++i) {
    const double base = std::pow(10000.0, -2.0 * static_cast<double>(i) / 64);
    const double ramp = std::clamp((static_cast<double>(i) - 10) / 13, 0.0, 1.0);
    EXPECT_NEAR(freq[i], base * (1 - ramp) + base / 40 * ramp, 1e-6 * base) << i;
  }
}

// All ways to say which layers have an indexer of their own; 8 layers as in the published example.
TEST(Config, SharedIndexersByListPatternAndRule) {
  const std::vector<bool> expected{true, true, true, false, false, false, true, false};
  Json config = published_config("glm-5");
  config["num_hidden_layers"] = 8;
  const auto is_full = [&] { return mla(read(config)).indexer->is_full; };
  EXPECT_EQ(is_full(), std::vector<bool>(8, true));
  config["index_topk_freq"] = 4;
  config["index_skip_topk_offset"] = 3;
  EXPECT_EQ(is_full(), expected);
  config["index_topk_pattern"] = "FFSSSSSS";
  EXPECT_EQ(is_full(), (std::vector<bool>{true, true, false, false, false, false, false, false}));
  config["indexer_types"] = {"full", "full", "full", "shared", "shared", "shared", "full", "shared"};
  EXPECT_EQ(is_full(), expected);
  for (const TensorSpec& tensor : tensor_plan(read(config)))
    EXPECT_FALSE(tensor.part == Part::kIndexer && tensor.layer == 3) << tensor.name;
  config["indexer_types"][0] = "shared";
  EXPECT_NE(std::string(error_of([&] { read(config); }).what()).find("layer 0"), std::string::npos);
}

TEST(Config, OldAndNewSpellingsAreTheSame) {
  Json config = published_config("glm-5");
  config.erase("first_k_dense_replace");
  Json kinds = Json::array();
  for (int layer = 0; layer < 78; ++layer) kinds.push_back(layer == 1 ? "dense" : "sparse");
  config["mlp_layer_types"] = kinds;
  config["first_k_dense_replace"] = 3;  // loses
  EXPECT_TRUE(read(config).is_sparse[0]);
  EXPECT_FALSE(read(config).is_sparse[1]);
  config.erase("rope_parameters");
  config["rope_theta"] = 8e6;
  EXPECT_EQ(read(config).rope.theta, 8e6);

  Json qwen = published_config("qwen3-30b");
  qwen["num_local_experts"] = qwen["num_experts"];
  qwen.erase("num_experts");
  EXPECT_EQ(read(qwen).moe->E, 128);
}

TEST(Config, WhatIsNotSupportedIsNamed) {
  struct Case {
    const char* model;
    Json changes;
    const char* message;  // a part of it
  };
  const std::vector<Case> cases{
      {"glm-5", {{"model_type", "glm5_next"}}, "glm5_next"},
      {"glm-5", {{"hidden_act", "gelu"}}, "'gelu'"},
      {"glm-5", {{"rope_parameters", {{"rope_theta", 1e6}, {"rope_type", "llama3"}}}}, "'llama3'"},
      {"glm-5", {{"scoring_func", "softmax"}}, "scoring_func"},
      {"glm-5", {{"topk_method", "greedy"}}, "topk_method"},
      {"glm-5", {{"moe_layer_freq", 2}}, "moe_layer_freq"},
      {"glm-5", {{"attention_bias", true}}, "attention_bias"},
      {"qwen3-30b", {{"use_sliding_window", true}}, "use_sliding_window"},
      {"glm-4.5-air", {{"use_sliding_window", true}, {"sliding_window", 4096}}, "use_sliding_window"},
  };
  for (const Case& c : cases) {
    Json config = published_config(c.model);
    config.update(c.changes);
    const Error error = error_of([&] { read(config); });
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported) << error.what();
    EXPECT_NE(std::string(error.what()).find(c.message), std::string::npos) << error.what();
  }
  Json unknown = published_config("glm-5");
  unknown["model_type"] = "glm5_next";
  for (const char* supported :
       {"glm_moe_dsa", "deepseek_v3", "kimi_k2", "deepseek_v32", "glm4_moe", "qwen3_moe"})
    EXPECT_NE(std::string(error_of([&] { read(unknown); }).what()).find(supported), std::string::npos);
}

TEST(Config, BrokenValuesAreNamed) {
  struct Case {
    const char* model;
    const char* key;
    Json value;
  };
  const std::vector<Case> cases{
      {"glm-5", "hidden_size", 0},
      {"glm-5", "hidden_size", -6144},
      {"glm-5", "hidden_size", int64_t{1} << 62},
      {"glm-5", "hidden_size", "6144"},
      {"glm-5", "num_hidden_layers", 1000000000},
      {"glm-5", "vocab_size", nullptr},
      {"glm-5", "rms_norm_eps", -1e-5},
      {"glm-5", "qk_rope_head_dim", 63},
      {"glm-5", "index_head_dim", 32},
      {"glm-5", "q_lora_rank", nullptr},
      {"glm-5", "num_experts_per_tok", 257},
      {"glm-5", "n_routed_experts", 1 << 20},
      {"glm-5", "mlp_layer_types", {"dense", "sparse"}},
      {"glm-5", "routed_scaling_factor", 0},
      {"glm-5", "eos_token_id", "one"},
      {"glm-5", "eos_token_id", {1, 154880}},
      {"glm-5", "qk_head_dim", 192},
      {"glm-5", "num_key_value_heads", 0},
      {"deepseek-v3", "num_key_value_heads", -1},
      {"deepseek-v3", "n_group", 7},
      {"deepseek-v3", "topk_group", 9},
      {"deepseek-v3", "rope_theta", 0},
      {"glm-4.5-air", "num_key_value_heads", 7},
      {"glm-4.5-air", "partial_rotary_factor", 0},
      {"qwen3-30b", "head_dim", 1},
  };
  for (const Case& c : cases) {
    Json config = published_config(c.model);
    config[c.key] = c.value;
    const Error error = error_of([&] { read(config); });
    EXPECT_EQ(error.kind(), ErrorKind::kFormat) << c.key << ": " << error.what();
    EXPECT_NE(std::string(error.what()).find("config.json"), std::string::npos) << error.what();
  }
  // 4096 layers of 16384 experts: each in bounds, the product not.
  Json config = published_config("glm-5");
  config["num_hidden_layers"] = 4096;
  config["n_routed_experts"] = 16384;
  EXPECT_EQ(error_of([&] { read(config); }).kind(), ErrorKind::kFormat);
  EXPECT_EQ(error_of([&] { read(Json::array()); }).kind(), ErrorKind::kFormat);
}

}  // namespace
}  // namespace sinter::models
