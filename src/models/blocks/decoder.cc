// The frame that all models share: embedding, layers of attention and feed-forward around a float32
// residual, final norm, head.
#include <algorithm>
#include <optional>

#include "base/error.h"
#include "models/blocks/attention.h"
#include "models/blocks/mlp.h"

namespace sinter::models {
namespace {

struct Layer {
  TensorView input_norm, post_attention_norm;  // [H] f32
  std::unique_ptr<Attention> attention;
  std::variant<std::monostate, DenseMlp, MoeMlp> mlp;
};

class Decoder final : public Model {
 public:
  Decoder(const checkpoint::Checkpoint& checkpoint, dispatch::Context& context, const LoadProgress& progress)
      : context_(context),
        spec_(read_decoder_spec(checkpoint.config(), checkpoint.config_where())),
        rope_(spec_.rope, context),
        arena_(context) {
    WeightLoader loader(checkpoint, context, spec_, progress);
    embedding_ = loader.table("model.embed_tokens.weight");
    layers_.reserve(static_cast<size_t>(spec_.L));
    for (int layer = 0; layer < spec_.L; ++layer) layers_.push_back(load_layer(loader, layer));
    final_norm_ = loader.vector("model.norm.weight");
    head_ = loader.head();
    loader.finish();
  }

  const DecoderSpec& spec() const override { return spec_; }
  dispatch::Context& context() const override { return context_; }
  void set_probe(Probe probe) override { probe_ = std::move(probe); }
  DType activation_dtype() const override {
    return context_.options().reference ? DType::kF32 : DType::kBF16;
  }

  void forward(const Batch& batch, Cache& cache, const TensorView& logits) override {
    arena_.reset();
    Step step{.context = context_,
              .arena = arena_,
              .probe = probe_,
              .cache = cache,
              .batch = batch.paged,
              .T = batch.ids.dim(0),
              .B = batch.paged.page_table.dim(0),
              .max_context = batch.max_context,
              .act = activation_dtype()};
    // Selecting topk of topk rows or fewer selects all: then no layer scores.
    if (const auto* mla = std::get_if<MlaSpec>(&spec_.attention);
        mla != nullptr && mla->indexer && step.max_context > mla->indexer->topk)
      step.index_ids = step.take(DType::kI32, {step.T, mla->indexer->topk});

    const TensorView residual = step.take(DType::kF32, {step.T, spec_.H});
    const TensorView normed = step.take(step.act, {step.T, spec_.H});
    step.gather(batch.ids, embedding_, residual);
    for (step.layer = 0; step.layer < spec_.L; ++step.layer) {
      const Layer& layer = layers_[static_cast<size_t>(step.layer)];
      step.rms_norm(residual, layer.input_norm, spec_.norm_eps, normed);
      {
        const Arena::Scope scope(arena_);
        layer.attention->run(step, rope_, normed, residual);
      }
      step.report("attention_residual", residual);
      step.rms_norm(residual, layer.post_attention_norm, spec_.norm_eps, normed);
      {
        const Arena::Scope scope(arena_);
        if (const auto* moe = std::get_if<MoeMlp>(&layer.mlp)) moe->run(step, normed, residual);
        if (const auto* dense = std::get_if<DenseMlp>(&layer.mlp)) dense->run(step, normed, residual);
      }
      step.report("residual", residual);
    }
    write_logits(step, residual, batch, logits);
    arena_.reset();
  }

 private:
  Layer load_layer(WeightLoader& loader, int idx) {
    const std::string prefix = fmt::format("model.layers.{}", idx);
    Layer layer;
    layer.input_norm = loader.vector(prefix + ".input_layernorm.weight");
    if (const auto* mla = std::get_if<MlaSpec>(&spec_.attention))
      layer.attention = make_mla(loader, prefix + ".self_attn", *mla, idx, spec_.norm_eps);
    if (const auto* gqa = std::get_if<GqaSpec>(&spec_.attention))
      layer.attention = make_gqa(loader, prefix + ".self_attn", *gqa, spec_.norm_eps);
    layer.post_attention_norm = loader.vector(prefix + ".post_attention_layernorm.weight");
    if (spec_.is_sparse[static_cast<size_t>(idx)])
      layer.mlp.emplace<MoeMlp>(loader, prefix + ".mlp", *spec_.moe);
    else
      layer.mlp.emplace<DenseMlp>(loader, prefix + ".mlp");
    return layer;
  }

  void write_logits(const Step& step, const TensorView& residual, const Batch& batch,
                    const TensorView& logits) {
    const std::span<const int32_t> rows = batch.logit_rows;
    if (rows.empty()) return;
    const auto num_rows = static_cast<int64_t>(rows.size());
    check_shape(logits, {num_rows, spec_.V}, "logits");
    TensorView wanted;
    const bool is_run =
        std::ranges::adjacent_find(rows, [](int32_t a, int32_t b) { return b != a + 1; }) == rows.end();
    if (is_run) {
      wanted = residual.slice(0, rows.front(), rows.front() + num_rows);
    } else {
      wanted = step.take(DType::kF32, {num_rows, spec_.H});
      step.gather(batch.logit_row_ids, residual, wanted);
    }
    const TensorView normed = step.take(step.act, {num_rows, spec_.H});
    step.rms_norm(wanted, final_norm_, spec_.norm_eps, normed);
    head_.run(step, normed, logits);
  }

  dispatch::Context& context_;
  DecoderSpec spec_;
  Rope rope_;
  TensorView embedding_;  // [V, H] as stored
  std::vector<Layer> layers_;
  TensorView final_norm_;  // [H] f32
  Linear head_;
  Arena arena_;
  Probe probe_;
};

}  // namespace

std::unique_ptr<Model> load_model(const checkpoint::Checkpoint& checkpoint, dispatch::Context& context,
                                  const LoadProgress& progress) {
  return std::make_unique<Decoder>(checkpoint, context, progress);
}

}  // namespace sinter::models
