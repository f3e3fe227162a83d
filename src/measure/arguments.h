// Random arguments for a case: what contract test, benchmark and tuner run kernels on.
//
// Made to expose mistakes: activations have outliers; weights have zero and subnormal scales and lie at odd
// addresses; pages are shuffled; cache rows that no token sees, padding between strided rows and outputs hold
// NaN (integers: kPoison).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kernels/kernel.h"
#include "measure/cases.h"
#include "measure/random.h"
#include "tensor/buffer.h"

namespace sinter::measure {

inline constexpr int32_t kPoison = -0x5a5a5a5a;

class Arguments {
 public:
  // The same seed gives the same arguments. Throws Error(kFormat) when the case makes no sense.
  Arguments(const Case& one, uint64_t seed);
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  const ops::Args& args() const { return args_; }
  // Lays the weights out as `kernel` reads them. Nothing to do for ops without.
  void pack_for(const kernels::KernelInfo& kernel, ThreadPool& pool);

  struct Output {
    std::string_view name;
    TensorView view;
  };
  const std::vector<Output>& outputs() const { return outputs_; }
  // As before the first launch: poisoned, or what an op in place works on.
  void reset_outputs();
  // Nothing was written to the outputs' memory outside of the outputs.
  bool is_padding_intact() const;

  // What the tensors and the weights lie in: for copies in other memory.
  std::span<const Buffer> buffers() const { return buffers_; }
  const ops::PackedWeights& weights() const { return weights_; }

 private:
  TensorView make(DType dtype, const Shape& shape, bool may_be_strided = false);
  TensorView make_activations(DType dtype, const Shape& shape, bool may_be_strided = false,
                              float outlier = 16);
  TensorView make_output(std::string_view name, DType dtype, const Shape& shape, bool may_be_strided = false);
  void add_output(std::string_view name, const TensorView& view);  // view: the latest made
  void fill(const TensorView& view, float outlier);

  ops::Weight make_weight(ops::WeightFormat format, int64_t N, int64_t K);
  ops::WeightFormat pick_format(ops::WeightFormat format, int64_t K);

  ops::PagedBatch make_batch(int64_t T, int64_t B, int64_t P, int64_t max_context);
  TensorView make_cache(DType dtype, const Shape& shape, const ops::PagedBatch& batch);
  TensorView make_indices(int64_t T, int64_t topk, const ops::PagedBatch& batch);
  TensorView make_expert_ids(const ops::MoeFfnProblem& p);

  ops::Args make_args(const ops::EmbeddingProblem& p);
  ops::Args make_args(const ops::RmsNormProblem& p);
  ops::Args make_args(const ops::LayerNormProblem& p);
  ops::Args make_args(const ops::RopeProblem& p);
  ops::Args make_args(const ops::LinearProblem& p);
  ops::Args make_args(const ops::HeadLinearProblem& p);
  ops::Args make_args(const ops::SiluMulProblem& p);
  ops::Args make_args(const ops::RouterProblem& p);
  ops::Args make_args(const ops::MoeFfnProblem& p);
  ops::Args make_args(const ops::MlaAttentionProblem& p);
  ops::Args make_args(const ops::GqaAttentionProblem& p);
  ops::Args make_args(const ops::IndexerProblem& p);
  ops::Args make_args(const ops::CacheWriteProblem& p);
  ops::Args make_args(const ops::SampleProblem& p);

  Scenario scenario_;
  Random random_;
  std::vector<Buffer> buffers_;
  ops::PackedWeights weights_;
  std::vector<ops::SampleParams> sample_params_;
  std::vector<std::vector<int32_t>> histories_;
  std::vector<std::span<const int32_t>> history_views_;
  std::vector<uint64_t> draw_idx_;
  std::vector<int64_t> lengths_;  // of the sequences of the batch
  int64_t num_pages_ = 0;

  std::vector<Output> outputs_;
  struct Snapshot {
    std::span<std::byte> memory;
    std::vector<std::byte> before;
  };
  std::vector<Snapshot> snapshots_;  // one per output
  ops::Args args_;
};

}  // namespace sinter::measure
