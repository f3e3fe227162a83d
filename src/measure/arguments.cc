#include "measure/arguments.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "numerics/bf16.h"
#include "numerics/fp16.h"

namespace sinter::measure {
namespace {

constexpr int64_t kRowPadding = 3;     // elements: rows at odd addresses
constexpr size_t kWeightOffset = 8;    // bytes: files align tensors to no more
constexpr int64_t kNumSparePages = 2;  // hold NaN; unused entries of page tables name one of them

// Small ones are exactly as long as needed, so that a sanitizer sees a read behind the end; large ones take
// the pages that a model's memory has.
Buffer allocate(size_t size_bytes) {
  if (size_bytes >= size_t{2} << 20) return Buffer::host(size_bytes);
  void* data = nullptr;
  if (::posix_memalign(&data, 64, std::max<size_t>(size_bytes, 1)) != 0)
    throw Error(
        ErrorKind::kMemory,
        {.where = "arguments", .expected = fmt::format("{} bytes", size_bytes), .found = "none", .mend = {}});
  return Buffer(static_cast<std::byte*>(data), size_bytes, [](std::byte* memory) { std::free(memory); });
}

// NaN in every float type, out of range in i32.
void poison(std::span<std::byte> memory, DType dtype) {
  if (dtype == DType::kI32) {
    std::fill_n(reinterpret_cast<int32_t*>(memory.data()), memory.size() / 4, kPoison);
    return;
  }
  std::memset(memory.data(), 0xff, memory.size());
}

void put(const TensorView& view, int64_t element, float value) {
  switch (view.dtype()) {
    case DType::kF32: view.data_as<float>()[element] = value; return;
    case DType::kBF16: view.data_as<uint16_t>()[element] = numerics::to_bf16(value); return;
    case DType::kF16: view.data_as<uint16_t>()[element] = numerics::to_fp16(value); return;
    default: SINTER_CHECK(false, "activations of {}", name(view.dtype()));
  }
}

// function(element offset of a row, its length) for every row of a view of rank 1 to 3.
template <typename Function>
void for_each_row(const TensorView& view, const Function& function) {
  const int rank = view.rank();
  SINTER_CHECK(rank >= 1 && (rank <= 3 || view.is_contiguous()), "rank {}", rank);
  if (view.is_contiguous()) return function(int64_t{0}, view.num_elements());
  const int64_t num_inner = rank == 3 ? view.dim(1) : 1;
  for (int64_t i = 0; i < view.dim(0); ++i)
    for (int64_t j = 0; j < num_inner; ++j)
      function(i * view.stride(0) + (rank == 3 ? j * view.stride(1) : 0), view.dim(rank - 1));
}

}  // namespace

Arguments::Arguments(const Case& one, uint64_t seed) : scenario_(one.scenario), random_(seed) {
  args_ = std::visit([&](const auto& problem) { return make_args(problem); }, one.problem);
  ops::check_args(one.problem, args_);
}

void Arguments::pack_for(const kernels::KernelInfo& kernel, ThreadPool& pool) {
  weights_.layout = kernel.layout;
  weights_.packed = {};
  if (kernel.pack == nullptr) return;
  weights_.packed = Buffer::host(kernel.packed_bytes(weights_.source));
  kernels::LaunchContext context{.pool = pool, .workspace = {}};
  kernel.pack(context, weights_.source, weights_.packed.bytes());
}

void Arguments::reset_outputs() {
  for (const Snapshot& snapshot : snapshots_)
    std::memcpy(snapshot.memory.data(), snapshot.before.data(), snapshot.before.size());
}

bool Arguments::is_padding_intact() const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    // With the output itself put back, nothing may differ.
    const TensorView& view = outputs_[i].view;
    const Snapshot& snapshot = snapshots_[i];
    std::vector<std::byte> after(snapshot.memory.begin(), snapshot.memory.end());
    const auto element_bytes = static_cast<int64_t>(size_bytes(view.dtype()));
    const int64_t start = static_cast<std::byte*>(view.data()) - snapshot.memory.data();
    for_each_row(view, [&](int64_t offset, int64_t length) {
      const auto begin = snapshot.before.begin() + start + offset * element_bytes;
      std::copy(begin, begin + length * element_bytes, after.begin() + start + offset * element_bytes);
    });
    if (after != snapshot.before) return false;
  }
  return true;
}

TensorView Arguments::make(DType dtype, const Shape& shape, bool may_be_strided) {
  std::array<int64_t, Shape::kMaxRank> dims{};
  std::copy(shape.dims().begin(), shape.dims().end(), dims.begin());
  const int rank = shape.rank();
  const bool strided = may_be_strided && scenario_.strided;
  if (strided) {
    dims[static_cast<size_t>(rank - 1)] += kRowPadding;
    if (rank == 3) dims[1] += 1;
  }
  const Shape padded(std::span<const int64_t>(dims.data(), static_cast<size_t>(rank)));
  Buffer& buffer =
      buffers_.emplace_back(allocate(static_cast<size_t>(padded.num_elements()) * sinter::size_bytes(dtype)));
  poison(buffer.bytes(), dtype);
  TensorView view(buffer.data(), dtype, padded);
  for (int i = 0; i < rank; ++i) view = view.slice(i, 0, shape[i]);
  return view;
}

void Arguments::fill(const TensorView& view, float outlier) {
  for_each_row(view, [&](int64_t offset, int64_t length) {
    for (int64_t i = 0; i < length; ++i)
      put(view, offset + i, random_.uniform(-1, 1) * (random_.one_in(64) ? outlier : 1));
  });
}

TensorView Arguments::make_activations(DType dtype, const Shape& shape, bool may_be_strided, float outlier) {
  TensorView view = make(dtype, shape, may_be_strided);
  fill(view, outlier);
  return view;
}

void Arguments::add_output(std::string_view name, const TensorView& view) {
  outputs_.push_back({name, view});
  const std::span<std::byte> memory = buffers_.back().bytes();
  snapshots_.push_back({memory, std::vector<std::byte>(memory.begin(), memory.end())});
}

TensorView Arguments::make_output(std::string_view name, DType dtype, const Shape& shape,
                                  bool may_be_strided) {
  TensorView view = make(dtype, shape, may_be_strided);
  add_output(name, view);
  return view;
}

ops::WeightFormat Arguments::pick_format(ops::WeightFormat format, int64_t K) {
  using enum ops::WeightFormat;
  if (format != kMixed) return format;
  constexpr ops::WeightFormat kAll[] = {kNvfp4, kBF16, kFp8Tensor, kFp8Block, kF16, kF32, kMxfp4};
  return kAll[random_.below(K % 32 == 0 ? 7 : 6)];
}

ops::Weight Arguments::make_weight(ops::WeightFormat format, int64_t N, int64_t K) {
  using enum ops::WeightFormat;
  const int64_t block = format == kNvfp4 ? 16 : format == kMxfp4 ? 32 : 1;
  if (K % block != 0)
    throw Error(ErrorKind::kFormat,
                {.where = "case",
                 .expected = fmt::format("K a multiple of {} for {}", block, ops::name(format)),
                 .found = fmt::format("{}", K),
                 .mend = {}});
  ops::Weight weight{
      .format = format, .N = N, .K = K, .data = {}, .scale = {}, .input_scale = {}, .name = "random"};

  const auto make_bits = [&](DType dtype, const Shape& shape, auto of_bits) {
    const auto num_elements = static_cast<size_t>(shape.num_elements());
    Buffer& buffer =
        buffers_.emplace_back(allocate(num_elements * sinter::size_bytes(dtype) + kWeightOffset));
    std::byte* data = buffer.data() + kWeightOffset;
    using Element = decltype(of_bits(uint64_t{}));
    constexpr size_t kPerWord = sizeof(Element) < 4 ? 4 / sizeof(Element) : 1;
    constexpr auto kStep = static_cast<int>(64 / kPerWord);
    for (size_t i = 0; i < num_elements;) {
      uint64_t bits = random_.next();
      for (size_t j = 0; j < kPerWord && i < num_elements;
           ++j, ++i, bits = kStep < 64 ? bits >> (kStep % 64) : 0) {
        const Element element = of_bits(bits);
        std::memcpy(data + i * sizeof(Element), &element, sizeof element);
      }
    }
    return TensorView(data, dtype, shape);
  };
  // Sign and mantissa at random, exponents from 2^-7 to 1.
  const auto f32_bits = [](uint64_t bits) {
    return static_cast<uint32_t>((bits & 0x807fffff) | (120 + (bits >> 32 & 7)) << 23);
  };
  const auto bf16_bits = [](uint64_t bits) {
    return static_cast<uint16_t>((bits & 0x807f) | (120 + (bits >> 7 & 7)) << 7);
  };
  const auto f16_bits = [](uint64_t bits) {
    return static_cast<uint16_t>((bits & 0x83ff) | (8 + (bits >> 10 & 7)) << 10);
  };
  const auto e4m3_bits = [](uint64_t bits) {  // all codes but NaN
    return static_cast<uint8_t>((bits & 0x7f) == 0x7f ? bits & 0xfe : bits);
  };
  // Mostly 1/8 to 30; one in 32 zero or subnormal, one in 64 the largest.
  const auto e4m3_scale = [](uint64_t bits) {
    if ((bits >> 8 & 31) == 0) return static_cast<uint8_t>(bits & 7);
    if ((bits >> 8 & 63) == 1) return uint8_t{0x7e};
    return static_cast<uint8_t>(0x20 + (bits & 0x3f));
  };
  // Mostly 2^-7 to 2^8; one in 32 the smallest.
  const auto e8m0_scale = [](uint64_t bits) {
    return static_cast<uint8_t>((bits >> 8 & 31) == 0 ? 0 : 120 + (bits & 15));
  };

  switch (format) {
    case kF32: weight.data = make_bits(DType::kF32, {N, K}, f32_bits); break;
    case kF16: weight.data = make_bits(DType::kF16, {N, K}, f16_bits); break;
    case kBF16: weight.data = make_bits(DType::kBF16, {N, K}, bf16_bits); break;
    case kFp8Tensor:
    case kFp8Block: weight.data = make_bits(DType::kF8E4M3, {N, K}, e4m3_bits); break;
    case kNvfp4:
    case kMxfp4:
      weight.data =
          make_bits(DType::kF4E2M1x2, {N, K / 2}, [](uint64_t bits) { return static_cast<uint8_t>(bits); });
      break;
    case kMixed: SINTER_CHECK(false, "a matrix of mixed format");
  }
  if (format == kFp8Block) {
    weight.scale = make_bits(DType::kF32, {(N + 127) / 128, (K + 127) / 128}, f32_bits);
    for (int64_t i = 0; i < weight.scale.num_elements(); ++i)
      weight.scale.data_as<float>()[i] = std::abs(weight.scale.data_as<float>()[i]) * 0x1p-6f;
  }
  if (format == kNvfp4) weight.scale = make_bits(DType::kF8E4M3, {N, K / 16}, e4m3_scale);
  if (format == kMxfp4) weight.scale = make_bits(DType::kF8E8M0, {N, K / 32}, e8m0_scale);
  if (format == kNvfp4 || format == kFp8Tensor) weight.scale_tensor = random_.uniform(0x1p-8f, 0x1p-6f);
  return weight;
}

ops::PagedBatch Arguments::make_batch(int64_t T, int64_t B, int64_t P, int64_t max_context) {
  SINTER_CHECK(B > 0 && P > 0, "a batch of {} sequences in pages of {}", B, P);
  lengths_ = scenario_.lengths.empty() ? std::vector<int64_t>(static_cast<size_t>(B), max_context)
                                       : scenario_.lengths;
  ops::PagedBatch batch{.page_table = make(DType::kI32, {B, (max_context + P - 1) / P}),
                        .seq_idx = make(DType::kI32, {T}),
                        .positions = make(DType::kI32, {T})};
  if (lengths_.size() != static_cast<size_t>(B) ||
      *std::max_element(lengths_.begin(), lengths_.end()) > max_context)
    throw Error(ErrorKind::kFormat, {.where = "case",
                                     .expected = fmt::format("{} lengths of at most {}", B, max_context),
                                     .found = fmt::format("{} or longer ones", lengths_.size()),
                                     .mend = {}});
  num_pages_ = kNumSparePages;
  for (int64_t length : lengths_) num_pages_ += (length + P - 1) / P;
  std::vector<int32_t> pages(static_cast<size_t>(num_pages_));
  std::iota(pages.begin(), pages.end(), 0);
  for (size_t i = pages.size() - 1; i > 0; --i)
    std::swap(pages[i], pages[static_cast<size_t>(random_.below(static_cast<int64_t>(i) + 1))]);
  const int32_t unused = pages.back();

  int64_t t = 0;
  for (int64_t b = 0, page = 0; b < B; ++b) {
    const int64_t length = lengths_[static_cast<size_t>(b)];
    const int64_t num_tokens = T * (b + 1) / B - T * b / B;
    if (num_tokens > length)
      throw Error(ErrorKind::kFormat, {.where = "case",
                                       .expected = fmt::format("a length of at least {} tokens", num_tokens),
                                       .found = fmt::format("{}", length),
                                       .mend = {}});
    for (int64_t i = 0; i < num_tokens; ++i, ++t) {
      batch.seq_idx.data_as<int32_t>()[t] = static_cast<int32_t>(b);
      batch.positions.data_as<int32_t>()[t] = static_cast<int32_t>(length - num_tokens + i);
    }
    int32_t* row = batch.page_table.row<int32_t>(b);
    for (int64_t i = 0; i < batch.page_table.dim(1); ++i)
      row[i] = i * P < length ? pages[static_cast<size_t>(page++)] : unused;
  }
  return batch;
}

// shape: of one page, [P, ...].
TensorView Arguments::make_cache(DType dtype, const Shape& shape, const ops::PagedBatch& batch) {
  std::vector<int64_t> dims = {num_pages_};
  dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
  TensorView cache = make(dtype, Shape(std::span<const int64_t>(dims)));
  const int64_t P = shape[0];
  const int64_t row_elements = shape.num_elements() / P;
  const TensorView rows = cache.reshape({num_pages_ * P, row_elements});
  for (size_t b = 0; b < lengths_.size(); ++b)
    for (int64_t i = 0; i < lengths_[b]; ++i) {
      const int64_t page = batch.page_table.row<int32_t>(static_cast<int64_t>(b))[i / P];
      fill(rows.slice(0, page * P + i % P, page * P + i % P + 1), 4);
    }
  return cache;
}

TensorView Arguments::make_indices(int64_t T, int64_t topk, const ops::PagedBatch& batch) {
  if (topk == 0) return {};
  TensorView indices = make(DType::kI32, {T, topk});
  std::vector<int32_t> positions;
  for (int64_t t = 0; t < T; ++t) {
    const int64_t num_visible = int64_t{batch.positions.data_as<int32_t>()[t]} + 1;
    // The first token names as many as it can, the second of three or more none.
    const int64_t most = std::min(topk, num_visible);
    const int64_t num_named = t == 0 ? most : t == 1 && T >= 3 ? 0 : random_.below(most + 1);
    positions.resize(static_cast<size_t>(num_visible));
    std::iota(positions.begin(), positions.end(), 0);
    int32_t* row = indices.row<int32_t>(t);
    std::fill(row, row + topk, -1);
    for (int64_t i = 0; i < num_named; ++i) {
      std::swap(positions[static_cast<size_t>(i)],
                positions[static_cast<size_t>(i + random_.below(num_visible - i))]);
      row[i] = positions[static_cast<size_t>(i)];
    }
    for (int64_t i = topk - 1; i > 0; --i) std::swap(row[i], row[random_.below(i + 1)]);
  }
  return indices;
}

TensorView Arguments::make_expert_ids(const ops::MoeFfnProblem& p) {
  TensorView ids = make(DType::kI32, {p.T, p.A});
  std::vector<int32_t> experts(static_cast<size_t>(p.E));
  std::iota(experts.begin(), experts.end(), 0);
  for (int64_t t = 0; t < p.T; ++t) {
    const bool same = scenario_.routing == Routing::kOneExpert && t > 0;
    for (int64_t a = 0; a < p.A; ++a) {
      if (!same)
        std::swap(experts[static_cast<size_t>(a)], experts[static_cast<size_t>(a + random_.below(p.E - a))]);
      ids.row<int32_t>(t)[a] = experts[static_cast<size_t>(a)];
    }
    if (scenario_.routing == Routing::kEmptySlots)
      for (int64_t a = 0; a < p.A; ++a)
        if (t == 0 || random_.one_in(2)) ids.row<int32_t>(t)[a] = -1;
  }
  return ids;
}

ops::Args Arguments::make_args(const ops::EmbeddingProblem& p) {
  ops::EmbeddingArgs args;
  args.ids = make(DType::kI32, {p.T});
  for (int64_t t = 0; t < p.T; ++t) args.ids.data_as<int32_t>()[t] = static_cast<int32_t>(random_.below(p.V));
  args.weight = make_activations(p.weight, {p.V, p.H});
  args.y = make_output("y", p.y, {p.T, p.H});
  return args;
}

ops::Args Arguments::make_args(const ops::RmsNormProblem& p) {
  ops::RmsNormArgs args;
  args.x = make_activations(p.x, {p.N, p.H}, true);
  args.weight = make_activations(DType::kF32, {p.H});
  args.y = make_output("y", p.y, {p.N, p.H}, true);
  return args;
}

ops::Args Arguments::make_args(const ops::LayerNormProblem& p) {
  ops::LayerNormArgs args;
  args.x = make_activations(p.x, {p.N, p.H}, true);
  args.weight = make_activations(DType::kF32, {p.H});
  args.bias = make_activations(DType::kF32, {p.H});
  args.y = make_output("y", p.y, {p.N, p.H}, true);
  return args;
}

ops::Args Arguments::make_args(const ops::RopeProblem& p) {
  ops::RopeArgs args;
  args.positions = make(DType::kI32, {p.T});
  for (int64_t t = 0; t < p.T; ++t)
    args.positions.data_as<int32_t>()[t] = static_cast<int32_t>(random_.below(200000));
  args.inv_freq = make(DType::kF32, {p.R / 2});
  for (int64_t i = 0; i < p.R / 2; ++i)
    args.inv_freq.data_as<float>()[i] =
        std::pow(10000.0f, -2.0f * static_cast<float>(i) / static_cast<float>(p.R));
  args.x = make_activations(p.x, {p.T, p.N, p.R}, true);
  add_output("x", args.x);
  return args;
}

ops::Args Arguments::make_args(const ops::LinearProblem& p) {
  ops::LinearArgs args;
  weights_.source = make_weight(p.format, p.N, p.K);
  args.weight = &weights_;
  args.x = make_activations(p.x, {p.T, p.K}, true);
  if (p.has_bias) args.bias = make_activations(DType::kF32, {p.N});
  if (p.accumulate) {
    args.y = make_activations(p.y, {p.T, p.N}, true);
    add_output("y", args.y);
  } else {
    args.y = make_output("y", p.y, {p.T, p.N}, true);
  }
  return args;
}

ops::Args Arguments::make_args(const ops::HeadLinearProblem& p) {
  ops::HeadLinearArgs args;
  args.x = make_activations(p.x, {p.T, p.Q, p.K}, true);
  args.weight = make_activations(p.weight, {p.Q, p.N, p.K}, false, 2);
  args.y = make_output("y", p.y, {p.T, p.Q, p.N}, true);
  return args;
}

ops::Args Arguments::make_args(const ops::SiluMulProblem& p) {
  ops::SiluMulArgs args;
  args.gate = make_activations(p.x, {p.T, p.I}, true);
  args.up = make_activations(p.x, {p.T, p.I}, true);
  args.y = make_output("y", p.y, {p.T, p.I}, true);
  return args;
}

ops::Args Arguments::make_args(const ops::RouterProblem& p) {
  ops::RouterArgs args;
  // Beyond 6 sigmoids come so near to 1 that float32 ties would decide the choice.
  args.logits = make_activations(DType::kF32, {p.T, p.E}, false, 6);
  if (p.has_bias) args.bias = make_activations(DType::kF32, {p.E}, false, 2);
  args.ids = make_output("ids", DType::kI32, {p.T, p.A});
  args.weights = make_output("weights", DType::kF32, {p.T, p.A});
  return args;
}

ops::Args Arguments::make_args(const ops::MoeFfnProblem& p) {
  ops::MoeFfnArgs args;
  ops::MoeWeights experts;
  for (int64_t e = 0; e < p.E; ++e) {
    experts.gate.push_back(make_weight(pick_format(p.format, p.H), p.I, p.H));
    experts.up.push_back(make_weight(pick_format(p.format, p.H), p.I, p.H));
    experts.down.push_back(make_weight(pick_format(p.format_down, p.I), p.H, p.I));
  }
  weights_.source = std::move(experts);
  args.experts = &weights_;
  args.x = make_activations(p.x, {p.T, p.H}, true);
  args.ids = make_expert_ids(p);
  args.weights = make(DType::kF32, {p.T, p.A});
  for (int64_t i = 0; i < p.T * p.A; ++i) args.weights.data_as<float>()[i] = random_.uniform(0.05f, 0.5f);
  if (p.accumulate) {
    args.y = make_activations(p.y, {p.T, p.H});
    add_output("y", args.y);
  } else {
    args.y = make_output("y", p.y, {p.T, p.H});
  }
  return args;
}

ops::Args Arguments::make_args(const ops::MlaAttentionProblem& p) {
  ops::MlaAttentionArgs args;
  args.q_latent = make_activations(p.q, {p.T, p.Q, p.C}, true, 4);
  args.q_pe = make_activations(p.q, {p.T, p.Q, p.R}, true, 4);
  args.batch = make_batch(p.T, p.B, p.P, p.max_context);
  args.cache = make_cache(p.cache, {p.P, p.C + p.R}, args.batch);
  args.indices = make_indices(p.T, p.index_topk, args.batch);
  args.y = make_output("y", p.q, {p.T, p.Q, p.C});
  return args;
}

ops::Args Arguments::make_args(const ops::GqaAttentionProblem& p) {
  ops::GqaAttentionArgs args;
  args.q = make_activations(p.q, {p.T, p.Q, p.D}, true, 4);
  args.batch = make_batch(p.T, p.B, p.P, p.max_context);
  args.k_cache = make_cache(p.cache, {p.P, p.G, p.D}, args.batch);
  args.v_cache = make_cache(p.cache, {p.P, p.G, p.Dv}, args.batch);
  args.indices = make_indices(p.T, p.index_topk, args.batch);
  args.y = make_output("y", p.q, {p.T, p.Q, p.Dv});
  return args;
}

ops::Args Arguments::make_args(const ops::IndexerProblem& p) {
  ops::IndexerArgs args;
  args.q = make_activations(p.q, {p.T, p.heads, p.D}, false, 4);
  args.w = make_activations(DType::kF32, {p.T, p.heads}, false, 4);
  args.batch = make_batch(p.T, p.B, p.P, p.max_context);
  args.k_cache = make_cache(p.cache, {p.P, p.D}, args.batch);
  args.indices = make_output("indices", DType::kI32, {p.T, p.topk});
  return args;
}

ops::Args Arguments::make_args(const ops::CacheWriteProblem& p) {
  ops::CacheWriteArgs args;
  int64_t longest = (p.T + p.B - 1) / p.B;
  for (int64_t length : scenario_.lengths) longest = std::max(longest, length);
  args.x = make_activations(p.x, {p.T, p.W}, true);
  args.batch = make_batch(p.T, p.B, p.P, longest);
  args.cache = make_cache(p.cache, {p.P, p.W}, args.batch);
  add_output("cache", args.cache);
  return args;
}

ops::Args Arguments::make_args(const ops::SampleProblem& p) {
  ops::SampleArgs args;
  args.logits = make_activations(DType::kF32, {p.B, p.V}, false, 4);
  for (int64_t b = 0; b < p.B; ++b) {
    ops::SampleParams& params = sample_params_.emplace_back();
    params.temperature = random_.one_in(4) ? 0 : random_.uniform(0.2f, 2);
    if (random_.one_in(2)) params.top_k = static_cast<int32_t>(1 + random_.below(p.V));
    if (random_.one_in(2)) params.top_p = random_.uniform(0.1f, 1);
    if (random_.one_in(2)) params.min_p = random_.uniform(0, 0.5f);
    if (random_.one_in(2)) params.repetition_penalty = random_.uniform(0.5f, 2);
    if (random_.one_in(2)) params.frequency_penalty = random_.uniform(-1, 1);
    if (random_.one_in(2)) params.presence_penalty = random_.uniform(-1, 1);
    params.seed = random_.next();
    draw_idx_.push_back(random_.next() >> 40);
    std::vector<int32_t>& history = histories_.emplace_back(static_cast<size_t>(random_.below(2 * p.V)));
    for (int32_t& id : history) id = static_cast<int32_t>(random_.below(p.V));
  }
  history_views_.assign(histories_.begin(), histories_.end());
  args.params = sample_params_;
  args.history = history_views_;
  args.draw_idx = draw_idx_;
  args.ids = make_output("ids", DType::kI32, {p.B});
  return args;
}

}  // namespace sinter::measure
