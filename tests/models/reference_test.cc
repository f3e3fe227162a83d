// Against transformers: float32 logits, chosen experts and positions of small random checkpoints of every
// model type (tests/golden/reference). The checkpoints themselves are written anew by a script.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "checkpoint/safetensors.h"
#include "engine/generator.h"
#include "models/tiny_checkpoint.h"

namespace sinter::models {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(SINTER_SOURCE_DIR) / "tests/golden/reference";

// What a run chose: [layer, token] -> experts, positions.
using Choices = std::map<std::pair<int64_t, int64_t>, std::set<int32_t>>;

struct Outcome {
  std::vector<float> logits;  // [T, V]
  Choices experts, positions;
};

Outcome run(const std::filesystem::path& folder, const dispatch::Options& options,
            const std::vector<int32_t>& ids, int64_t chunk) {
  LoadedModel loaded(folder, options);
  Outcome result;
  int64_t num_done = 0;
  loaded.model->set_probe([&](int layer, std::string_view name, const TensorView& value) {
    if (name != "router_ids" && name != "index_ids") return;
    for (int64_t t = 0; t < value.dim(0); ++t) {
      std::set<int32_t>& chosen =
          (name == "router_ids" ? result.experts : result.positions)[{layer, num_done + t}];
      for (int64_t i = 0; i < value.dim(1); ++i)
        if (const int32_t id = value.row<int32_t>(t)[i]; id >= 0) chosen.insert(id);
    }
  });
  engine::score_tokens(*loaded.model, ids, chunk, [&](int64_t position, std::span<const float> row) {
    num_done = position + 1;
    result.logits.insert(result.logits.end(), row.begin(), row.end());
  });
  return result;
}

// ||a - b|| / ||b|| over the first `num` numbers
double relative_error(std::span<const float> a, std::span<const float> b, size_t num) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < num; ++i) {
    difference += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    norm += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(difference / norm);
}

struct Expected {
  int64_t V;
  std::vector<float> logits;
  Choices experts, positions;
};

Expected read_expected(const std::string& name, const std::string& suffix) {
  const checkpoint::SafetensorsFile file(kFolder / (name + ".safetensors"));
  Expected result;
  const TensorView logits = file.at("logits" + suffix);
  result.V = logits.dim(1);
  result.logits.assign(logits.data_as<float>(), logits.data_as<float>() + logits.num_elements());
  const TensorView experts = file.at("experts" + suffix);
  for (int64_t layer = 0; layer < experts.dim(0); ++layer)
    for (int64_t t = 0; t < experts.dim(1); ++t)
      for (int64_t a = 0; a < experts.dim(2); ++a)
        if (const int32_t id = experts.slice(0, layer, layer + 1).data_as<int32_t>()[t * experts.dim(2) + a];
            id >= 0)
          result.experts[{layer, t}].insert(id);
  if (file.find("selected" + suffix) == nullptr) return result;
  const TensorView selected = file.at("selected" + suffix);
  for (int64_t layer = 0; layer < selected.dim(0); ++layer)
    for (int64_t t = 0; t < selected.dim(1); ++t)
      for (int64_t p = 0; p < selected.dim(2); ++p)
        if (selected.slice(0, layer, layer + 1).data_as<uint8_t>()[t * selected.dim(2) + p] != 0)
          result.positions[{layer, t}].insert(static_cast<int32_t>(p));
  return result;
}

class Reference : public testing::TestWithParam<std::tuple<const char*, bool>> {
 protected:
  void SetUp() override {
    if (std::string(SINTER_PYTHON).empty())
      GTEST_SKIP() << "needs Python with NumPy: configure with SINTER_PYTHON";
    const auto& [name, is_nvfp4] = GetParam();
    const std::string command =
        fmt::format("'{}' '{}' {} '{}' {}", SINTER_PYTHON, (kFolder / "make_checkpoint.py").string(), name,
                    folder_.path().string(), is_nvfp4 ? "--nvfp4" : "");
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    expected_ = read_expected(name, is_nvfp4 ? "_nvfp4" : "");
    for (const Json& id : parse_json_file(kFolder / "tokens.json")) ids_.push_back(id.get<int32_t>());
    ASSERT_EQ(expected_.logits.size(), ids_.size() * static_cast<size_t>(expected_.V));
  }

  // Choices that we report must be the expected ones; returns the first token with another one.
  int64_t first_flip(const Outcome& run) const {
    auto first = static_cast<int64_t>(ids_.size());
    for (const auto& [ours, theirs] :
         {std::pair(&run.experts, &expected_.experts), {&run.positions, &expected_.positions}})
      for (const auto& [key, chosen] : *ours)
        if (chosen != theirs->at(key)) first = std::min(first, key.second);
    return first;
  }

  void expect_float32_agrees();
  void expect_bf16_agrees();

  TemporaryFolder folder_;
  Expected expected_;
  std::vector<int32_t> ids_;
};

// float32: in one piece, in chunks and token by token.
// bf16 between ops flips choices that are near a tie, and a flip reaches all later tokens: compared up to
// there. One test, as writing the checkpoint takes longest.
TEST_P(Reference, Agrees) {
  expect_float32_agrees();
  expect_bf16_agrees();
}

void Reference::expect_float32_agrees() {
  const dispatch::Options options{.reference = true};
  const auto num_tokens = static_cast<int64_t>(ids_.size());
  const Outcome whole = run(folder_.path(), options, ids_, num_tokens);
  ASSERT_EQ(whole.logits.size(), expected_.logits.size());
  EXPECT_LT(relative_error(whole.logits, expected_.logits, whole.logits.size()), 1e-4);
  EXPECT_FALSE(whole.experts.empty());
  EXPECT_EQ(whole.positions.empty(), expected_.positions.empty());
  EXPECT_EQ(first_flip(whole), num_tokens) << "a choice of experts or positions differs";
  for (const int64_t chunk : {7, 1}) {
    const Outcome parts = run(folder_.path(), options, ids_, chunk);
    EXPECT_LT(relative_error(parts.logits, whole.logits, whole.logits.size()), 1e-5) << "chunks of " << chunk;
    EXPECT_EQ(first_flip(parts), num_tokens) << "chunks of " << chunk;
  }
}

void Reference::expect_bf16_agrees() {
  for (const bool pack_weights : {true, false}) {
    const Outcome whole =
        run(folder_.path(), {.pack_weights = pack_weights}, ids_, static_cast<int64_t>(ids_.size()));
    const auto num_compared = static_cast<size_t>(first_flip(whole));
    RecordProperty(pack_weights ? "tokens_packed" : "tokens_in_place", static_cast<int>(num_compared));
    ASSERT_GT(num_compared, 0u);
    const double error =
        relative_error(whole.logits, expected_.logits, num_compared * static_cast<size_t>(expected_.V));
    EXPECT_LT(error, 3e-2);
  }
}

INSTANTIATE_TEST_SUITE_P(, Reference,
                         testing::Combine(testing::Values("glm_moe_dsa", "glm_moe_dsa_shared", "deepseek_v3",
                                                          "kimi_k2", "deepseek_v32", "glm4_moe", "qwen3_moe"),
                                          testing::Bool()),
                         [](const auto& values) {
                           return std::string(std::get<0>(values.param)) +
                                  (std::get<1>(values.param) ? "_nvfp4" : "_bf16");
                         });

}  // namespace
}  // namespace sinter::models
