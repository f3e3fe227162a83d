#include "workbench/inspect.h"

#include <ostream>

#include "model_configs.h"

namespace sinter::workbench {
namespace {

Inspection look(const Json& config, std::string_view store = "") {
  const TemporaryFolder folder(config);
  const ModelFolder model = open_model_folder(folder.str());
  return inspect(model, take_inventory(model, parse_store(store)));
}

const PartSummary& part(const Inspection& inspection, models::Part wanted) {
  for (const PartSummary& each : inspection.parts)
    if (each.part == wanted) return each;
  throw Error(ErrorKind::kInternal, {std::string(name(wanted)), "a part", "none", ""});
}

// In 1e9: what the publishers say, main layers alone.
struct Totals {
  const char* model;
  double total, active, routed, routed_active;
};

// Letters and digits only: "glm-4.5" is glm_4_5.
std::string test_name(std::string name) {
  for (char& c : name)
    if (c == '-' || c == '.') c = '_';
  return name;
}

void PrintTo(const Totals& totals, std::ostream* out) { *out << totals.model; }

class PublishedTotals : public testing::TestWithParam<Totals> {};

TEST_P(PublishedTotals, Agree) {
  const Totals& expected = GetParam();
  const Inspection found = look(published_config(expected.model));
  EXPECT_NEAR(static_cast<double>(found.num_parameters) / 1e9, expected.total, 0.0006);
  EXPECT_NEAR(static_cast<double>(found.num_active) / 1e9, expected.active, 0.006);
  const PartSummary& routed = part(found, models::Part::kRouted);
  EXPECT_NEAR(static_cast<double>(routed.num_parameters) / 1e9, expected.routed, 0.006);
  EXPECT_NEAR(static_cast<double>(routed.num_active) / 1e9, expected.routed_active, 0.0006);
}

INSTANTIATE_TEST_SUITE_P(Models, PublishedTotals,
                         testing::Values(Totals{"glm-5", 743.911, 40.833, 724.78, 22.649},
                                         Totals{"deepseek-v3", 671.026, 36.63, 653.91, 20.435},
                                         Totals{"deepseek-v3.2", 671.878, 37.48, 653.91, 20.435},
                                         Totals{"kimi-k2", 1026.408, 31.69, 1014.69, 21.139},
                                         Totals{"glm-4.5-air", 106.852, 12.80, 99.66, 6.229},
                                         Totals{"glm-4.5", 352.798, 32.86, 335.96, 16.798},
                                         Totals{"qwen3-30b", 30.532, 3.042, 28.99, 1.812},
                                         Totals{"qwen3-235b", 235.094, 21.57, 227.10, 14.194}),
                         [](const auto& test) { return test_name(test.param.model); });

TEST(Inspect, CacheBytesPerToken) {
  const Inspection glm = look(published_config("glm-5"));
  EXPECT_EQ(glm.cache_bytes_per_token, 89856 + 19968);
  ASSERT_EQ(glm.caches.size(), 2u);
  EXPECT_EQ(glm.caches[0].bytes_per_token, 89856);
  EXPECT_EQ(glm.caches[1].bytes_per_token, 19968);
  EXPECT_EQ(look(published_config("qwen3-30b")).cache_bytes_per_token, 48 * 2 * 4 * 128 * 2);
}

TEST(Inspect, SharedIndexersHaveNoTensorsAndNoKeys) {
  Json config = published_config("glm-5");
  config["index_topk_freq"] = 4;
  config["index_skip_topk_offset"] = 3;
  const Inspection found = look(config);
  EXPECT_EQ(part(found, models::Part::kIndexer).num_parameters, 21 * (4096 * 2048 + 128 * 6144 + 32 * 6144));
  EXPECT_EQ(found.cache_bytes_per_token, 89856 + 21 * 256);
}

TEST(Inspect, FormatsComeFromTheConfigurationWhenThereAreNoWeights) {
  Json config = published_config("glm-5");
  config["quantization_config"] = {{"quant_method", "modelopt"},
                                   {"quant_algo", "NVFP4"},
                                   {"ignore",
                                    {"lm_head", "model.layers.*.self_attn*", "model.layers.*.mlp.gate",
                                     "model.layers.*.mlp.shared_experts*", "model.layers.0.mlp*"}}};
  const Inspection found = look(config);
  const auto format = [&](models::Part which) { return part(found, which).formats.at(0).format; };
  EXPECT_EQ(format(models::Part::kRouted), ops::WeightFormat::kNvfp4);
  EXPECT_EQ(format(models::Part::kShared), ops::WeightFormat::kBF16);
  EXPECT_EQ(format(models::Part::kAttention), ops::WeightFormat::kBF16);
  EXPECT_EQ(format(models::Part::kIndexer), ops::WeightFormat::kBF16);
  EXPECT_EQ(format(models::Part::kHead), ops::WeightFormat::kBF16);
  // Layer 0 is excluded, layers 1 and 2 are not.
  const PartSummary& dense = part(found, models::Part::kDense);
  ASSERT_EQ(dense.formats.size(), 2u);
  EXPECT_EQ(dense.formats[0].num_tensors, 3);
  EXPECT_EQ(dense.formats[1].num_tensors, 6);

  // The same option tells "what if".
  const Inspection what_if = [&] {
    const TemporaryFolder folder(config);
    const ModelFolder model = open_model_folder(folder.str());
    return inspect(model, take_inventory(model, parse_store("attention=fp8,routed=bf16")));
  }();
  EXPECT_EQ(part(what_if, models::Part::kAttention).formats.at(0).format, ops::WeightFormat::kFp8Tensor);
  EXPECT_EQ(part(what_if, models::Part::kRouted).formats.at(0).format, ops::WeightFormat::kBF16);
}

TEST(Inspect, OtherQuantisationsOfConfigurations) {
  Json config = published_config("glm-5");
  config["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
  const Inspection fp8 = look(config);
  EXPECT_EQ(part(fp8, models::Part::kAttention).formats.at(0).format, ops::WeightFormat::kFp8Block);
  EXPECT_EQ(part(fp8, models::Part::kHead).formats.at(0).format, ops::WeightFormat::kBF16);
  EXPECT_EQ(part(fp8, models::Part::kRouter).formats.at(0).format, ops::WeightFormat::kBF16);

  config["quantization_config"] = Json::parse(R"({
    "quant_method": "compressed-tensors", "format": "mixed-precision",
    "ignore": ["lm_head", "re:.*mlp.gate$", "re:model\\.layers\\.[0-2]\\..*"],
    "config_groups": {
      "group_0": {"targets": ["re:.*self_attn.*"],
                  "weights": {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}},
      "group_1": {"targets": ["re:.*mlp.*"],
                  "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}}}})");
  const Inspection mixed = look(config);
  EXPECT_EQ(part(mixed, models::Part::kRouted).formats.at(0).format, ops::WeightFormat::kNvfp4);
  EXPECT_EQ(part(mixed, models::Part::kAttention).formats.at(0).format, ops::WeightFormat::kFp8Block);
  EXPECT_EQ(part(mixed, models::Part::kAttention).formats.at(1).format, ops::WeightFormat::kBF16);
  EXPECT_EQ(part(mixed, models::Part::kDense).formats.at(0).format, ops::WeightFormat::kBF16);

  config["quantization_config"] = {{"quant_method", "awq"}};
  EXPECT_EQ(error_of([&] { look(config); }).kind(), ErrorKind::kUnsupported);
  config["quantization_config"] =
      Json::parse(R"({"quant_method": "compressed-tensors", "config_groups": {}, "ignore": ["re:(("]})");
  EXPECT_EQ(error_of([&] { look(config); }).kind(), ErrorKind::kFormat);
}

TEST(Inspect, StoreOptionNamesWhatIsWrong) {
  for (const char* text :
       {"routed", "routed=", "=nvfp4", "experts=nvfp4", "routed=int4", "norms=bf16", "routed=nvfp4,,"}) {
    const Error error = error_of([&] { parse_store(text); });
    EXPECT_EQ(error.kind(), ErrorKind::kUsage) << text;
  }
  EXPECT_EQ(parse_store("all=nvfp4,head=bf16").at(models::Part::kHead), ops::WeightFormat::kBF16);
}

}  // namespace
}  // namespace sinter::workbench
