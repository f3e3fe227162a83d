#include "checkpoint/checkpoint.h"

#include "base/json.h"
#include "checkpoint/config_json.h"
#include "model_folder.h"

namespace sinter::checkpoint {
namespace {

void write_tensor(const ModelFolder& folder, const char* file, std::vector<const char*> names,
                  uint8_t value = 1) {
  TensorSet set;
  for (const char* name : names) set.fill<uint8_t>(name, DType::kU8, {2}, value);
  set.write(folder.path() / file);
}

uint8_t first_byte(const Checkpoint& checkpoint, const char* name) {
  return *checkpoint.at(name).data_as<uint8_t>();
}

TEST(Checkpoint, ConfigAloneIsEnough) {
  const ModelFolder folder;
  folder.write("generation_config.json", R"({"top_p": 0.95})");
  const Checkpoint checkpoint(folder.path());
  EXPECT_FALSE(checkpoint.has_weights());
  EXPECT_EQ(checkpoint.config().at("model_type"), "any");
  ASSERT_NE(checkpoint.generation_config(), nullptr);
  EXPECT_EQ(checkpoint.quantization_config(), nullptr);
  EXPECT_TRUE(throws(ErrorKind::kFormat, {folder.path().string(), "tensor 'x'", "no safetensors file"},
                     [&] { checkpoint.at("x"); }));
}

TEST(Checkpoint, SaysWhatIsMissing) {
  const ModelFolder folder;
  const auto open = [](const std::filesystem::path& path) { return [path] { Checkpoint checkpoint(path); }; };
  EXPECT_TRUE(throws(ErrorKind::kFile, {"none", "no such folder"}, open(folder.path() / "none")));
  EXPECT_TRUE(throws(ErrorKind::kFile, {"found a file"}, open(folder.path() / "config.json")));
  EXPECT_TRUE(throws(ErrorKind::kFile, {"File name too long"}, open(std::string(5000, 'x'))));
  folder.write("config.json", "[]");
  EXPECT_TRUE(throws(ErrorKind::kFormat, {"config.json", "JSON object"}, open(folder.path())));
  std::filesystem::remove(folder.path() / "config.json");
  EXPECT_TRUE(throws(ErrorKind::kFile, {"config.json"}, open(folder.path())));
}

TEST(Checkpoint, ReadsShardsAndFilesBesideTheIndex) {
  const ModelFolder folder;
  write_tensor(folder, "model-00001-of-00002.safetensors", {"a"}, 1);
  write_tensor(folder, "model-00002-of-00002.safetensors", {"b", "not_indexed"}, 2);
  write_tensor(folder, "mtp.safetensors", {"a", "c"}, 3);  // 'a' is a copy: the indexed one counts
  folder.write("model.safetensors.index.json",
               R"({"metadata": {"total_size": 4, "deep": [{"weight_map": {"z": 1}}]},
                   "weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}})");
  const Checkpoint checkpoint(folder.path());
  ASSERT_EQ(checkpoint.tensors().size(), 4u);
  EXPECT_EQ(checkpoint.total_bytes(), 8u);
  EXPECT_EQ(first_byte(checkpoint, "a"), 1);
  EXPECT_EQ(first_byte(checkpoint, "b"), 2);
  EXPECT_EQ(first_byte(checkpoint, "c"), 3);
  EXPECT_TRUE(checkpoint.has("not_indexed"));
  EXPECT_TRUE(checkpoint.where("c").ends_with("mtp.safetensors: tensor 'c'"));
}

TEST(Checkpoint, NamesMissingShards) {
  const ModelFolder folder;
  const auto open = [&] { Checkpoint checkpoint(folder.path()); };
  write_tensor(folder, "model-00001-of-00003.safetensors", {"a"});
  write_tensor(folder, "model-00003-of-00003.safetensors", {"c"});
  EXPECT_TRUE(throws(ErrorKind::kFile, {"model-00002-of-00003.safetensors", "3 shards"}, open));
  std::filesystem::rename(folder.path() / "model-00003-of-00003.safetensors",
                          folder.path() / "x.safetensors");
  std::filesystem::remove(folder.path() / "model-00001-of-00003.safetensors");
  folder.write("model.safetensors.index.json",
               R"({"weight_map": {"c": "x.safetensors", "d": "y.safetensors"}})");
  EXPECT_TRUE(throws(ErrorKind::kFile, {"y.safetensors", "the index names"}, open));
}

TEST(Checkpoint, RefusesLyingIndexes) {
  const ModelFolder folder;
  write_tensor(folder, "x.safetensors", {"a"});
  write_tensor(folder, "y.safetensors", {"b"});
  const auto refuses = [&](const char* index, std::vector<std::string_view> parts) {
    folder.write("model.safetensors.index.json", index);
    return throws(ErrorKind::kFormat, std::move(parts), [&] { Checkpoint checkpoint(folder.path()); });
  };
  EXPECT_TRUE(refuses(R"({"weight_map": {"a": "x.safetensors", "q": "x.safetensors"}})",
                      {"tensor 'q'", "no such tensor"}));
  EXPECT_TRUE(refuses(R"({"weight_map": {"a": "y.safetensors", "b": "x.safetensors"}})",
                      {"tensor 'a'", "it in x.safe"}));
  EXPECT_TRUE(refuses(R"({"weight_map": {"a": "../x.safetensors"}})", {"tensor 'a'", "same folder"}));
  EXPECT_TRUE(refuses(R"({"weight_map": {"a": 1}})", {"tensor 'a'", "name of a file"}));
  EXPECT_TRUE(refuses(R"({"weight_map": ["a"]})", {"index.json"}));
  EXPECT_TRUE(refuses(R"({"weight_map": "a"})", {"index.json"}));
  EXPECT_TRUE(refuses(R"({"weight_map": {}, "weight_map": {}})", {"second one"}));
  EXPECT_TRUE(refuses("[]", {"weight_map"}));
  EXPECT_TRUE(refuses("{", {"syntax error"}));
}

TEST(Checkpoint, RefusesATensorInTwoFiles) {
  const ModelFolder folder;
  write_tensor(folder, "x.safetensors", {"a"});
  write_tensor(folder, "y.safetensors", {"a"});
  EXPECT_TRUE(throws(ErrorKind::kFormat, {"x.safetensors: tensor 'a'", "y.safetensors"},
                     [&] { Checkpoint checkpoint(folder.path()); }));
}

TEST(Checkpoint, ChecksShapesAndConvertsSmallTensors) {
  const ModelFolder folder;
  TensorSet set;
  set.add<uint16_t>("norm", DType::kBF16, {2}, {0x3f80, 0xc000});
  set.add<uint16_t>("half", DType::kF16, {1}, {0x3800});
  set.add<float>("bias", DType::kF32, {1}, {0.25f});
  set.add<uint8_t>("codes", DType::kU8, {1}, {7});
  set.write(folder.path() / "model.safetensors");
  Checkpoint first(folder.path());
  const Checkpoint checkpoint(std::move(first));
  EXPECT_EQ(checkpoint.at_f32("norm", {2}).data_as<float>()[1], -2.0f);
  EXPECT_EQ(checkpoint.at_f32("norm", {2}).data(), checkpoint.at_f32("norm", {2}).data());
  EXPECT_EQ(*checkpoint.at_f32("half", {1}).data_as<float>(), 0.5f);
  EXPECT_EQ(checkpoint.at_f32("bias", {1}).data(), checkpoint.at("bias").data());
  EXPECT_TRUE(throws(ErrorKind::kFormat, {"tensor 'norm'", "[3]", "found [2]"},
                     [&] { checkpoint.at_f32("norm", {3}); }));
  EXPECT_TRUE(throws(ErrorKind::kFormat, {"tensor 'codes'", "BF16", "found U8"},
                     [&] { checkpoint.at_f32("codes", {1}); }));
}

TEST(ConfigJson, DropsTheListOfQuantizedLayers) {
  std::string text = R"({"quantization_config": {"quant_algo": "MIXED_PRECISION", "quantized_layers": {)";
  for (int i = 0; i < 30'000; ++i)
    text += fmt::format(R"({}"model.layers.{}": {{"quant_algo": "FP8"}})", i == 0 ? "" : ",", i);
  text += R"(}, "after": {"x": 1}}, "hidden_size": 8})";
  const Json config = parse_config(text, "config.json");
  EXPECT_EQ(config.dump(),
            R"({"quantization_config":{"quant_algo":"MIXED_PRECISION","after":{"x":1}},"hidden_size":8})");
}

TEST(ConfigJson, RefusesWhatWouldTakeForever) {
  std::string many = "{";
  for (int i = 0; i < 10'000; ++i) many += fmt::format(R"({}"{}":0)", i == 0 ? "" : ",", i);
  EXPECT_TRUE(
      throws(ErrorKind::kLimit, {"config.json", "keys"}, [&] { parse_config(many + "}", "config.json"); }));
  EXPECT_TRUE(throws(ErrorKind::kLimit, {"config.json", "64 deep"},
                     [&] { parse_config(R"({"a":)" + std::string(100'000, '['), "config.json"); }));
  EXPECT_TRUE(
      throws(ErrorKind::kFormat, {"syntax error"}, [&] { parse_config(R"({"a": 1,})", "config.json"); }));
  EXPECT_TRUE(
      throws(ErrorKind::kFormat, {"config.json"}, [&] { parse_config(R"({"a": 1e999})", "config.json"); }));
}

}  // namespace
}  // namespace sinter::checkpoint
