#include "models/blocks/config_reader.h"

#include <cmath>

#include "base/error.h"

namespace sinter::models {
namespace {

[[noreturn]] void refuse(const JsonObject& config, std::string_view key, std::string expected,
                         std::string found) {
  throw Error(
      ErrorKind::kUnsupported,
      {.where = config.where(key), .expected = std::move(expected), .found = std::move(found), .mend = {}});
}

[[noreturn]] void fail(std::string where, std::string expected, std::string found) {
  throw Error(
      ErrorKind::kFormat,
      {.where = std::move(where), .expected = std::move(expected), .found = std::move(found), .mend = {}});
}

// A finite number in (low, high].
double read_double(const JsonObject& config, std::string_view key, double low, double high,
                   double otherwise) {
  const double value = config.get_double_or(key, otherwise);
  if (!(value > low && value <= high))
    fail(config.where(key), fmt::format("a number over {} and at most {}", low, high),
         fmt::format("{}", value));
  return value;
}

int64_t read_dim(const JsonObject& config, std::string_view key, int64_t max = kMaxDim) {
  return config.get_int(key, 1, max);
}

void expect_word(const JsonObject& config, std::string_view key, std::string_view expected) {
  const std::string found = config.get_string_or(key, expected);
  if (found != expected)
    refuse(config, key, fmt::format("'{}', the only one supported", expected), fmt::format("'{}'", found));
}

// Two names of one count, the first where both stand.
int64_t read_either(const JsonObject& config, std::string_view key, std::string_view other, int64_t max) {
  return config.get_int(config.has(key) || !config.has(other) ? key : other, 1, max);
}

// A list with one word per layer; `yes` or `no`.
std::vector<bool> read_layer_words(const JsonObject& config, std::string_view key, int64_t L,
                                   std::string_view yes, std::string_view no) {
  const std::vector<std::string> words = config.get_strings(key);
  if (static_cast<int64_t>(words.size()) != L)
    fail(config.where(key), fmt::format("{} entries, one per layer", L), fmt::format("{}", words.size()));
  std::vector<bool> result;
  for (const std::string& word : words) {
    if (word != yes && word != no)
      fail(config.where(key), fmt::format("'{}' or '{}'", yes, no), fmt::format("'{}'", word));
    result.push_back(word == yes);
  }
  return result;
}

YarnSpec read_yarn(const JsonObject& rope) {
  YarnSpec yarn;
  yarn.factor = read_double(rope, "factor", 0, 1e6, 0);
  yarn.beta_fast = read_double(rope, "beta_fast", 0, 1e6, 32);
  yarn.beta_slow = read_double(rope, "beta_slow", 0, 1e6, 1);
  yarn.mscale = rope.get_double_or("mscale", 1);
  yarn.mscale_all_dim = rope.get_double_or("mscale_all_dim", 0);
  for (const char* key : {"mscale", "mscale_all_dim"})
    if (const double value = rope.get_double_or(key, 0); !(value >= 0 && value <= 100))
      fail(rope.where(key), "a number from 0 to 100", fmt::format("{}", value));
  yarn.original_max_positions = rope.get_int("original_max_position_embeddings", 1, kMaxPositions);
  if (rope.has("attention_factor")) yarn.attention_factor = read_double(rope, "attention_factor", 0, 1e3, 1);
  if (!rope.get_bool_or("truncate", true)) refuse(rope, "truncate", "true", "false");
  return yarn;
}

}  // namespace

void refuse_true(const JsonObject& config, std::string_view key) {
  if (config.get_bool_or(key, false)) refuse(config, key, "false, the only one supported", "true");
}

DecoderSpec read_frame(const JsonObject& config) {
  DecoderSpec spec;
  spec.model_type = config.get_string("model_type");
  spec.L = config.get_int("num_hidden_layers", 1, kMaxLayers);
  spec.H = read_dim(config, "hidden_size");
  spec.V = config.get_int("vocab_size", 1, kMaxVocabulary);
  spec.dense_I = read_dim(config, "intermediate_size");
  // Not over 1: an epsilon is there to avoid a division by zero.
  spec.norm_eps = config.has("rms_norm_eps") ? read_double(config, "rms_norm_eps", 0, 1, 0)
                                             : config.get_double("rms_norm_eps");
  spec.max_positions = config.get_int("max_position_embeddings", 1, kMaxPositions);
  spec.has_tied_head = config.get_bool_or("tie_word_embeddings", false);
  spec.eos_ids = config.get_ints("eos_token_id", 0, spec.V - 1);
  spec.num_mtp_layers = config.get_int_or(
      config.has("num_mtp_layers") ? "num_mtp_layers" : "num_nextn_predict_layers", 0, 64, 0);
  expect_word(config, "hidden_act", "silu");
  refuse_true(config, "mlp_bias");
  refuse_true(config, "use_sliding_window");
  return spec;
}

RopeSpec read_rope(const JsonObject& config, int64_t R, bool interleaved) {
  if (R % 2 != 0) fail(config.where(), "an even rotary dimension", fmt::format("{}", R));
  const auto parameters = config.find_object("rope_parameters");
  const auto scaling = config.find_object("rope_scaling");
  // Readers differ in which of the two they take.
  if (parameters && scaling)
    fail(config.where(), "rope_parameters or rope_scaling",
         "both: which of them the model was trained with?");
  const JsonObject* const rope = parameters ? &*parameters : scaling ? &*scaling : nullptr;
  RopeSpec spec{.theta = 0, .R = R, .interleaved = interleaved, .yarn = {}};
  const JsonObject& theta_holder = parameters && parameters->has("rope_theta") ? *parameters : config;
  (void)theta_holder.at("rope_theta");
  spec.theta = read_double(theta_holder, "rope_theta", 1, 1e12, 0);
  if (rope == nullptr) return spec;
  const std::string_view type_key = rope->has("rope_type") ? "rope_type" : "type";
  const std::string type = rope->get_string_or(type_key, "default");
  if (type == "yarn") {
    spec.yarn = read_yarn(*rope);
  } else if (type != "default") {
    refuse(*rope, type_key, "'default' or 'yarn'", fmt::format("'{}'", type));
  }
  return spec;
}

MlaSpec read_mla(const JsonObject& config, const RopeSpec& rope) {
  refuse_true(config, "attention_bias");
  MlaSpec mla;
  mla.Q = read_dim(config, "num_attention_heads", kMaxHeads);
  mla.q_rank = config.get_int_or("q_lora_rank", 1, kMaxDim, 0);
  mla.C = read_dim(config, "kv_lora_rank");
  mla.nope = read_dim(config, "qk_nope_head_dim", kMaxHeadDim);
  mla.R = rope.R;
  mla.Dv = read_dim(config, "v_head_dim", kMaxHeadDim);
  // Both follow from the others, and are not used; but a value that contradicts them tells of an error.
  const int64_t qk_dim = mla.nope + mla.R;
  if (config.get_int_or("qk_head_dim", 1, 2 * kMaxHeadDim, qk_dim) != qk_dim)
    fail(config.where("qk_head_dim"),
         fmt::format("{}, the sum of qk_nope_head_dim and qk_rope_head_dim", qk_dim),
         fmt::format("{}", config.get_int("qk_head_dim", 1, 2 * kMaxHeadDim)));
  (void)config.get_int_or("num_key_value_heads", 1, kMaxHeads, mla.Q);
  mla.softmax_scale =
      static_cast<float>(rope.softmax_factor() / std::sqrt(static_cast<double>(mla.nope + mla.R)));
  return mla;
}

IndexerSpec read_indexer(const JsonObject& config, int64_t L, bool rope_interleaved) {
  IndexerSpec indexer;
  indexer.heads = read_dim(config, "index_n_heads", kMaxHeads);
  indexer.D = read_dim(config, "index_head_dim", kMaxHeadDim);
  indexer.topk = config.get_int("index_topk", 1, kMaxDim);
  indexer.rope_interleaved = config.get_bool_or("indexer_rope_interleave", rope_interleaved);
  if (config.has("indexer_types")) {
    indexer.is_full = read_layer_words(config, "indexer_types", L, "full", "shared");
  } else if (config.has("index_topk_pattern")) {
    const std::string pattern = config.get_string("index_topk_pattern");
    if (static_cast<int64_t>(pattern.size()) != L || pattern.find_first_not_of("FS") != std::string::npos)
      fail(config.where("index_topk_pattern"), fmt::format("{} letters F or S, one per layer", L),
           fmt::format("'{}'", pattern));
    for (const char letter : pattern) indexer.is_full.push_back(letter == 'F');
  } else {
    const int64_t freq = config.get_int_or("index_topk_freq", 1, kMaxLayers, 1);
    const int64_t offset = freq > 1 ? config.get_int("index_skip_topk_offset", 0, kMaxLayers) : 0;
    for (int64_t layer = 0; layer < L; ++layer)
      indexer.is_full.push_back(std::max<int64_t>(layer - offset + 1, 0) % freq == 0);
  }
  return indexer;
}

GqaSpec read_gqa(const JsonObject& config, int64_t H) {
  GqaSpec gqa;
  gqa.Q = read_dim(config, "num_attention_heads", kMaxHeads);
  gqa.G = config.get_int_or("num_key_value_heads", 1, kMaxHeads, gqa.Q);
  if (!config.has("head_dim") && H % gqa.Q != 0)
    fail(config.where("head_dim"), "a value, as hidden_size is no multiple of num_attention_heads",
         "no such key");
  gqa.D = config.get_int_or("head_dim", 1, kMaxHeadDim, std::min(H / gqa.Q, kMaxHeadDim));
  return gqa;
}

int64_t read_rotary_dim(const JsonObject& config, int64_t D, double factor_default) {
  const auto rope = config.find_object("rope_parameters");
  const bool nested = rope && rope->has("partial_rotary_factor");
  const double factor = read_double(nested ? *rope : config, "partial_rotary_factor", 0, 1, factor_default);
  return static_cast<int64_t>(static_cast<double>(D) * factor);
}

MoeSpec read_sigmoid_moe(const JsonObject& config) {
  expect_word(config, "scoring_func", "sigmoid");
  expect_word(config, "topk_method", "noaux_tc");
  if (config.get_int_or("moe_layer_freq", 0, kMaxLayers, 1) != 1)
    refuse(config, "moe_layer_freq", "1, the only one supported",
           fmt::format("{}", config.get_int("moe_layer_freq", 0, kMaxLayers)));
  MoeSpec moe;
  moe.E = read_either(config, "n_routed_experts", "num_local_experts", kMaxExperts);
  moe.A = read_dim(config, "num_experts_per_tok", kMaxExperts);
  moe.I = read_dim(config, "moe_intermediate_size");
  moe.shared_I = config.get_int_or("n_shared_experts", 0, 64, 0) * moe.I;
  moe.scoring = ops::RouterScoring::kSigmoid;
  moe.num_groups = config.get_int_or("n_group", 1, kMaxExperts, 1);
  moe.topk_groups = config.get_int_or("topk_group", 1, kMaxExperts, 1);
  moe.normalize = config.get_bool_or("norm_topk_prob", true);
  moe.scale = read_double(config, "routed_scaling_factor", 0, 1e6, 1);
  moe.has_bias = true;
  return moe;
}

std::vector<bool> read_sparse_layers(const JsonObject& config, int64_t L) {
  if (config.has("mlp_layer_types")) return read_layer_words(config, "mlp_layer_types", L, "sparse", "dense");
  const int64_t num_dense = config.get_int("first_k_dense_replace", 0, kMaxLayers);
  std::vector<bool> result;
  for (int64_t layer = 0; layer < L; ++layer) result.push_back(layer >= num_dense);
  return result;
}

void check_spec(const DecoderSpec& spec, const std::string& where) {
  const auto expect = [&](bool holds, std::string expected, std::string found) {
    if (!holds) fail(where, std::move(expected), std::move(found));
  };
  if (const auto* mla = std::get_if<MlaSpec>(&spec.attention); mla != nullptr && mla->indexer) {
    const IndexerSpec& indexer = *mla->indexer;
    expect(mla->R <= indexer.D, "index_head_dim of at least qk_rope_head_dim",
           fmt::format("{} and {}", indexer.D, mla->R));
    expect(mla->q_rank > 0, "q_lora_rank, which the indexer reads", "none");
    expect(indexer.is_full[0], "an indexer of its own in layer 0, as later layers share it", "a shared one");
  }
  if (const auto* gqa = std::get_if<GqaSpec>(&spec.attention)) {
    expect(gqa->Q % gqa->G == 0, "num_attention_heads to be a multiple of num_key_value_heads",
           fmt::format("{} and {}", gqa->Q, gqa->G));
    expect(spec.rope.R >= 2 && spec.rope.R <= gqa->D, fmt::format("a rotary dimension from 2 to {}", gqa->D),
           fmt::format("{}", spec.rope.R));
  }
  int64_t num_sparse = 0;
  for (const bool is_sparse : spec.is_sparse) num_sparse += is_sparse ? 1 : 0;
  if (num_sparse == 0) return;
  const MoeSpec& moe = *spec.moe;
  expect(num_sparse * moe.E <= kMaxMatrices, fmt::format("at most {} experts in all layers", kMaxMatrices),
         fmt::format("{}", num_sparse * moe.E));
  expect(moe.A <= moe.E, "num_experts_per_tok of at most the number of experts",
         fmt::format("{} of {}", moe.A, moe.E));
  expect(moe.topk_groups <= moe.num_groups, "topk_group of at most n_group",
         fmt::format("{} of {}", moe.topk_groups, moe.num_groups));
  if (moe.num_groups == 1) return;
  const int64_t group_size = moe.E / moe.num_groups;
  expect(moe.E % moe.num_groups == 0 && group_size >= 2, "groups of equal size, of two experts or more",
         fmt::format("{} experts in {} groups", moe.E, moe.num_groups));
  expect(moe.A <= moe.topk_groups * group_size, "topk_group to leave at least num_experts_per_tok experts",
         fmt::format("{} experts from {} of {} groups of {}", moe.A, moe.topk_groups, moe.num_groups,
                     group_size));
}

DecoderSpec read_mla_moe(const JsonObject& config) {
  DecoderSpec spec = read_frame(config);
  // head_dim of these files (64 or 192) is not a dimension of anything.
  spec.rope = read_rope(config, config.get_int("qk_rope_head_dim", 2, kMaxHeadDim),
                        config.get_bool_or("rope_interleave", true));
  spec.attention = read_mla(config, spec.rope);
  spec.moe = read_sigmoid_moe(config);
  spec.is_sparse = read_sparse_layers(config, spec.L);
  return spec;
}

}  // namespace sinter::models
