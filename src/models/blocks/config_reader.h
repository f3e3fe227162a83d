// Pieces of config.json that several model files read the same way. Everything is bounded here, so that no
// product of dimensions overflows later and no list grows without limit. Absent keys mean what the model's
// published files mean by leaving them out.
#pragma once

#include "base/json.h"
#include "models/decoder_spec.h"

namespace sinter::models {

// Bounds far beyond any model: 2^20 * 2^20 elements still fit.
inline constexpr int64_t kMaxDim = int64_t{1} << 20;  // one dimension of a matrix
inline constexpr int64_t kMaxHeads = int64_t{1} << 12;
inline constexpr int64_t kMaxHeadDim = int64_t{1} << 12;
inline constexpr int64_t kMaxLayers = int64_t{1} << 12;
inline constexpr int64_t kMaxExperts = int64_t{1} << 14;   // of a layer
inline constexpr int64_t kMaxMatrices = int64_t{1} << 22;  // experts of all layers
inline constexpr int64_t kMaxVocabulary = int64_t{1} << 24;
inline constexpr int64_t kMaxPositions = int64_t{1} << 30;

// model_type, L, H, V, dense_I, norm_eps, max_positions, tied head, eos, MTP layers; every activation but
// silu is refused.
DecoderSpec read_frame(const JsonObject& config);

// `rope_parameters` (transformers 5), else top-level rope_theta with rope_scaling. Default and YaRN only;
// any other type is refused by name.
RopeSpec read_rope(const JsonObject& config, int64_t R, bool interleaved);

// Multi-head latent attention with the rope of `rope` (its YaRN enters the softmax scale).
MlaSpec read_mla(const JsonObject& config, const RopeSpec& rope);

// The indexer, with the layers that have one of their own: `indexer_types`, else `index_topk_pattern`,
// else the rule of index_topk_freq and index_skip_topk_offset; all of them when nothing is said.
IndexerSpec read_indexer(const JsonObject& config, int64_t L, bool rope_interleaved);

// All of a DeepSeek-V3 style model: latent attention over all rows, a sigmoid router, dense layers first.
DecoderSpec read_mla_moe(const JsonObject& config);

// Grouped-query attention; head_dim defaults to hidden_size / heads.
GqaSpec read_gqa(const JsonObject& config, int64_t H);

// int(head_dim * partial_rotary_factor), wherever the factor stands.
int64_t read_rotary_dim(const JsonObject& config, int64_t D, double factor_default);

// Sigmoid scores with a bias for the choice ("noaux_tc"): DeepSeek, GLM, Kimi.
MoeSpec read_sigmoid_moe(const JsonObject& config);

// `mlp_layer_types` wins over first_k_dense_replace.
std::vector<bool> read_sparse_layers(const JsonObject& config, int64_t L);

// Throws Error(kUnsupported) when the key is there and true.
void refuse_true(const JsonObject& config, std::string_view key);

// What holds for every decoder: heads divide, groups fit, counts agree. Throws Error(kFormat) naming keys.
void check_spec(const DecoderSpec& spec, const std::string& where);

}  // namespace sinter::models
