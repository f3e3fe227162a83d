// What a model is, as numbers: everything that follows from config.json. A model file turns a config into
// this; the blocks compute it; inspect, roofline and synth count with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ops/router.h"

namespace sinter::models {

struct YarnSpec {
  double factor = 1, beta_fast = 32, beta_slow = 1, mscale = 1, mscale_all_dim = 0;
  int64_t original_max_positions = 4096;
  std::optional<double> attention_factor;  // of cos and sin, in place of the ratio of the mscales
};

struct RopeSpec {
  double theta = 10000;
  int64_t R = 0;  // rotary dimension
  bool interleaved = false;
  std::optional<YarnSpec> yarn;

  std::vector<float> inv_freq() const;  // [R/2], YaRN applied; computed in double
  float cos_sin_scale() const;          // mscale(factor, mscale) / mscale(factor, mscale_all_dim), else 1
  double softmax_factor() const;        // of MLA: mscale(factor, mscale_all_dim)^2, else 1
};

// The lightning indexer of sparse attention.
struct IndexerSpec {
  int64_t heads = 0, D = 0, topk = 0;
  bool rope_interleaved = true;  // on the first R dimensions
  double norm_eps = 1e-6;        // of the LayerNorm on keys
  std::vector<bool> is_full;     // [L]; a layer that is not full uses the last full layer's choice
};

struct MlaSpec {
  int64_t Q = 0, q_rank = 0, C = 0, nope = 0, R = 0, Dv = 0;  // q_rank 0: one q_proj instead of q_a, q_b
  float softmax_scale = 1;                                    // YaRN's mscale^2 included
  std::optional<IndexerSpec> indexer;
};

struct GqaSpec {
  int64_t Q = 0, G = 0, D = 0;
  bool has_bias = false;     // on q, k, v
  bool has_qk_norm = false;  // RMSNorm over D of every q and k head, before rope
};

struct MoeSpec {
  int64_t E = 0, A = 0, I = 0;
  int64_t shared_I = 0;  // 0: no shared expert
  ops::RouterScoring scoring = ops::RouterScoring::kSigmoid;
  int64_t num_groups = 1, topk_groups = 1;
  bool normalize = true;
  double scale = 1;
  bool has_bias = true;  // e_score_correction_bias
};

struct DecoderSpec {
  std::string model_type;
  int64_t L = 0, H = 0, V = 0;
  int64_t dense_I = 0;
  double norm_eps = 1e-6;
  int64_t max_positions = 0;
  bool has_tied_head = false;
  RopeSpec rope;
  std::variant<MlaSpec, GqaSpec> attention;
  std::optional<MoeSpec> moe;
  std::vector<bool> is_sparse;  // [L]: MoE, else dense MLP
  std::vector<int64_t> eos_ids;
  int64_t num_mtp_layers = 0;  // in the checkpoint, not run
};

// Part of a step that a matrix belongs to: rows of inspect and roofline.
enum class Part : uint8_t {
  kEmbedding,
  kAttention,
  kIndexer,
  kRouter,
  kRouted,
  kShared,
  kDense,
  kNorms,
  kHead
};
std::string_view name(Part part);  // "routed"; of the --store option too

// One tensor that the model reads, by its name in the checkpoint.
struct TensorSpec {
  enum class Kind : uint8_t {
    kLinear,  // a matrix [N, K]; stored in any WeightFormat under name + ".weight" and neighbours
    kVector,  // norm weight, bias: `name` is the whole tensor name
    kTable,   // the embedding
  };
  std::string name;  // of a linear: the module ("model.layers.3.self_attn.o_proj")
  Kind kind = Kind::kLinear;
  Part part = Part::kAttention;
  int64_t N = 0, K = 1;  // K is 1 for a vector
  int layer = -1, expert = -1;
  bool is_f32 = false;  // e_score_correction_bias
  int64_t num_elements() const { return N * K; }
};

// All of them, in checkpoint order (layer by layer), MTP layers left out.
std::vector<TensorSpec> tensor_plan(const DecoderSpec& spec);

}  // namespace sinter::models
