#include "models/weights/weight_loader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/log.h"
#include "checkpoint/scheme.h"
#include "models/weights/dequantize.h"
#include "models/weights/leftover_tensors.h"
#include "numerics/bf16.h"

namespace sinter::models {
namespace {

int64_t stored_bytes(const ops::Weight& weight) {
  return ops::stored_bytes(weight.format, weight.N, weight.K);
}

// Gives the memory of a mapped tensor back once a packed copy has been made: the pages stay in the file
// cache, but no longer count as ours, and come again if somebody reads them after all. Never for memory
// that is not a file: it would be lost.
void release_mapped(const TensorView& tensor) {
  const auto page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(tensor.data());
  const uintptr_t first = (begin + page_bytes - 1) / page_bytes * page_bytes;
  const uintptr_t last = (begin + static_cast<uintptr_t>(tensor.size_bytes())) / page_bytes * page_bytes;
  auto* data = static_cast<std::byte*>(tensor.data());
  if (first < last) ::madvise(data + (first - begin), last - first, MADV_DONTNEED);
}

// The codes only: scales may have been converted, and are small.
void release_source(const ops::PackedWeights& weights) {
  if (weights.layout == ops::WeightLayout::kInPlace) return;
  if (const auto* weight = std::get_if<ops::Weight>(&weights.source)) return release_mapped(weight->data);
  for (const auto* matrices : {&weights.experts().gate, &weights.experts().up, &weights.experts().down})
    for (const ops::Weight& weight : *matrices) release_mapped(weight.data);
}

// Of what is read: layers behind the last are for multi-token prediction.
uint64_t bytes_to_load(const checkpoint::Checkpoint& checkpoint, const DecoderSpec& spec) {
  constexpr std::string_view kLayers = "model.layers.";
  uint64_t sum = 0;
  for (const checkpoint::Checkpoint::Stored& stored : checkpoint.tensors()) {
    const std::string_view name = stored.entry->name;
    int64_t layer = 0;
    if (name.starts_with(kLayers))
      std::from_chars(name.data() + kLayers.size(), name.data() + name.size(), layer);
    if (layer < spec.L) sum += stored.entry->size_bytes();
  }
  return sum;
}

void note_activation_scale(const ops::Weight& weight) {
  if (weight.format == ops::WeightFormat::kNvfp4 && weight.input_scale)
    log_once(LogLevel::kInfo,
             "the checkpoint has scales for 4-bit activations (W4A4); activations stay in 16 bits, which is "
             "more exact");
}

}  // namespace

std::pair<ops::WeightFormat, ops::WeightFormat> expert_formats(const ops::MoeWeights& experts) {
  const ops::WeightFormat gate = common_format(experts.gate);
  return {gate == common_format(experts.up) ? gate : ops::WeightFormat::kMixed, common_format(experts.down)};
}

WeightLoader::WeightLoader(const checkpoint::Checkpoint& checkpoint, dispatch::Context& context,
                           const DecoderSpec& spec, const LoadProgress& progress)
    : checkpoint_(checkpoint),
      context_(context),
      spec_(spec),
      progress_(progress),
      act_(context.options().reference ? DType::kF32 : DType::kBF16),
      plan_(tensor_plan(spec)),
      is_loaded_(plan_.size()) {
  if (!checkpoint.has_weights())
    throw Error(ErrorKind::kFile, {.where = checkpoint.folder().string(),
                                   .expected = "safetensors files with the weights",
                                   .found = "none",
                                   .mend = {}});
  check_leftover_tensors(checkpoint, spec, plan_);  // before minutes of packing
  for (size_t i = 0; i < plan_.size(); ++i) plan_idx_.emplace(plan_[i].name, i);
  const uint64_t size_bytes = bytes_to_load(checkpoint, spec);
  total_bytes_ = static_cast<int64_t>(size_bytes);
  context_.expect_weights(size_bytes, static_cast<uint64_t>(cache_bytes_per_token(spec, act_)));
}

const TensorSpec& WeightLoader::planned(const std::string& name) {
  const auto it = plan_idx_.find(name);
  SINTER_CHECK(it != plan_idx_.end(), "tensor '{}' is not in the plan", name);
  is_loaded_[it->second] = true;
  return plan_[it->second];
}

void WeightLoader::note_loaded(int64_t size_bytes) {
  done_bytes_ += size_bytes;
  if (progress_.report) progress_.report(std::min(done_bytes_, total_bytes_), total_bytes_);
}

Linear WeightLoader::prepare(ops::Weight weight, const LinearUse& use, TensorView bias) {
  note_activation_scale(weight);
  const int64_t N = weight.N, K = weight.K, size_bytes = stored_bytes(weight);
  const ops::LinearProblem problem{.T = 1,
                                   .N = N,
                                   .K = K,
                                   .format = weight.format,
                                   .x = act_,
                                   .y = use.into_residual ? DType::kF32 : use.y.value_or(act_),
                                   .has_bias = !bias.is_empty(),
                                   .accumulate = use.into_residual};
  Linear linear{.N = N, .K = K, .weight = context_.prepare(problem, std::move(weight)), .bias = bias};
  release_source(linear.weight);
  note_loaded(size_bytes);
  return linear;
}

Linear WeightLoader::linear(const std::string& name, const LinearUse& use) {
  const TensorSpec& tensor = planned(name);
  ops::Weight weight = checkpoint::read_linear(checkpoint_, name, tensor.N, tensor.K);
  return prepare(std::move(weight), use, use.has_bias ? vector(name + ".bias") : TensorView{});
}

TensorView WeightLoader::vector(const std::string& name) {
  const TensorSpec& tensor = planned(name);
  return context_.upload(checkpoint_.at_f32(name, {tensor.N}));
}

TensorView WeightLoader::table(const std::string& name) {
  const TensorSpec& tensor = planned(name);
  const TensorView view = checkpoint_.at(name);
  if (view.rank() == 2 && view.dim(1) == tensor.K && view.dim(0) != tensor.N)
    throw Error(ErrorKind::kFormat, {.where = checkpoint_.where(name),
                                     .expected = fmt::format("{} rows, vocab_size of config.json", tensor.N),
                                     .found = fmt::format("{}", view.dim(0)),
                                     .mend = {}});
  (void)checkpoint_.at(name, {tensor.N, tensor.K});
  if (view.dtype() != DType::kF32 && view.dtype() != DType::kF16 && view.dtype() != DType::kBF16)
    throw Error(ErrorKind::kUnsupported, {.where = checkpoint_.where(name),
                                          .expected = "an embedding in f32, f16 or bf16",
                                          .found = std::string(sinter::name(view.dtype())),
                                          .mend = {}});
  const TensorView table = context_.upload(view);
  if (table.data() != view.data()) release_mapped(view);
  note_loaded(view.size_bytes());
  return table;
}

Linear WeightLoader::head() {
  const LinearUse use{.y = DType::kF32};
  if (!spec_.has_tied_head) return linear("lm_head", use);
  ops::Weight weight = checkpoint::read_linear(checkpoint_, "model.embed_tokens", spec_.V, spec_.H);
  return prepare(std::move(weight), use, {});
}

ops::PackedWeights WeightLoader::experts(const std::string& prefix, const MoeSpec& moe) {
  for (int64_t expert = 0; expert < moe.E; ++expert)
    for (const char* which : {"gate_proj", "up_proj", "down_proj"})
      planned(fmt::format("{}.{}.{}", prefix, expert, which));
  ops::MoeWeights weights = checkpoint::read_experts(checkpoint_, prefix, moe.E, moe.I, spec_.H);
  int64_t size_bytes = 0;
  for (const auto* matrices : {&weights.gate, &weights.up, &weights.down})
    for (const ops::Weight& weight : *matrices) {
      note_activation_scale(weight);
      size_bytes += stored_bytes(weight);
    }
  const auto [format, format_down] = expert_formats(weights);
  const ops::MoeFfnProblem problem{.T = 1,
                                   .H = spec_.H,
                                   .I = moe.I,
                                   .E = moe.E,
                                   .A = moe.A,
                                   .format = format,
                                   .format_down = format_down,
                                   .x = act_,
                                   .y = DType::kF32,
                                   .accumulate = true};
  ops::PackedWeights packed = context_.prepare(problem, std::move(weights));
  release_source(packed);
  note_loaded(size_bytes);
  return packed;
}

SplitKvB WeightLoader::split_kv_b(const std::string& name, const MlaSpec& mla) {
  const TensorSpec& tensor = planned(name);
  const ops::Weight weight = checkpoint::read_linear(checkpoint_, name, tensor.N, tensor.K);
  note_activation_scale(weight);
  const int64_t Q = mla.Q, C = mla.C, nope = mla.nope, Dv = mla.Dv;
  const size_t element_bytes = size_bytes(act_);
  SplitKvB split;
  split.memory = Buffer::host(static_cast<size_t>(tensor.N * tensor.K) * element_bytes);
  split.w_uk = split.memory.view(act_, {Q, C, nope});
  split.w_uv = split.memory.view(act_, {Q, Dv, C}, static_cast<size_t>(Q * C * nope) * element_bytes);
  const auto store = [&](const TensorView& target, int64_t offset, float value) {
    if (act_ == DType::kF32)
      target.data_as<float>()[offset] = value;
    else
      target.data_as<uint16_t>()[offset] = numerics::to_bf16(value);
  };
  context_.pool().run([&](int worker_idx) {
    std::vector<float> row(static_cast<size_t>(C));
    const auto [begin, end] = context_.pool().part(worker_idx, Q);
    for (int64_t q = begin; q < end; ++q) {
      for (int64_t i = 0; i < nope; ++i) {  // transposed: the query is multiplied from the other side
        dequantize_row(weight, q * (nope + Dv) + i, row);
        for (int64_t c = 0; c < C; ++c)
          store(split.w_uk, (q * C + c) * nope + i, row[static_cast<size_t>(c)]);
      }
      for (int64_t i = 0; i < Dv; ++i) {
        dequantize_row(weight, q * (nope + Dv) + nope + i, row);
        for (int64_t c = 0; c < C; ++c) store(split.w_uv, (q * Dv + i) * C + c, row[static_cast<size_t>(c)]);
      }
    }
  });
  release_mapped(weight.data);
  if (context_.gpu() != nullptr) {
    split.w_uk = context_.upload(split.w_uk);
    split.w_uv = context_.upload(split.w_uv);
    split.memory = {};
  }
  note_loaded(stored_bytes(weight));
  return split;
}

void WeightLoader::finish() const {
  for (size_t i = 0; i < plan_.size(); ++i)
    SINTER_CHECK(is_loaded_[i], "tensor '{}' of the plan is not loaded", plan_[i].name);
  context_.finish_uploads();
  const dispatch::WeightPlacement& placement = context_.weight_placement();
  const auto gb = [](uint64_t bytes) { return static_cast<double>(bytes) * 1e-9; };
  log_once(LogLevel::kInfo,
           fmt::format("weights: {:.2f} GB packed, {:.2f} GB used in place: {}", gb(placement.packed_bytes),
                       gb(placement.in_place_bytes), placement.reason));
  if (placement.upload_s > 0)
    log_once(LogLevel::kInfo,
             fmt::format("{:.2f} GB to the GPU in {:.1f} s: {:.1f} GB/s", gb(placement.uploaded_bytes),
                         placement.upload_s, gb(placement.uploaded_bytes) / placement.upload_s));
}

}  // namespace sinter::models
