#include "kernels_cuda/case_check.h"
#include "kernels_cuda/device_types.h"

#undef SINTER_KERNEL
#define SINTER_Y Y
#define SINTER_KERNEL(max_threads) \
  template <typename Y>            \
  void
#include "kernels/cuda/moe_ffn_slots.cu"

#define SINTER_FORMAT Format
#define SINTER_FORMAT_DOWN FormatDown
#define SINTER_X X
#define SINTER_TILES kTiles
#undef SINTER_KERNEL
#define SINTER_KERNEL(max_threads)                                        \
  template <typename Format, typename FormatDown, typename X, int kTiles> \
  void
#include "kernels/cuda/moe_ffn_decode.cu"

#define SINTER_COLUMNS kColumns
#undef SINTER_KERNEL
#define SINTER_KERNEL(max_threads)                              \
  template <typename Format, typename FormatDown, int kColumns> \
  void
#include "kernels/cuda/moe_ffn_prefill.cu"

namespace sinter::kernels_cuda {
namespace {

using Problem = ops::MoeFfnProblem;
using Args = ops::MoeFfnArgs;

// What both regimes share: sorting before, combining after. products(...) is the middle.
template <typename X, typename Products>
void run_chain(const Problem& p, const Args& a, int tile_slots, bool backwards, const Products& products) {
  const int64_t S = p.T * p.A;
  const gpu::MoeFfnParams params = {narrow(p.T), narrow(p.H), narrow(p.I),  narrow(p.E),
                                    narrow(p.A), tile_slots,  p.accumulate, a.x.stride(0)};
  const int64_t max_tiles = gpu::moe_max_tiles(p.T, p.A, p.E, tile_slots);
  std::vector<gpu::Matrix> experts;
  for (size_t e = 0; e < static_cast<size_t>(p.E); ++e)
    for (const auto* matrices :
         {&a.experts->experts().gate, &a.experts->experts().up, &a.experts->experts().down})
      experts.push_back(matrix_of((*matrices)[e]));
  auto slots = poisoned<int>(S);
  auto tiles = poisoned<gpu::MoeTile>(max_tiles);
  auto num_tiles = poisoned<int>(1);
  auto hidden = poisoned<X>(S * p.I);
  auto outputs = poisoned<float>(S * p.H);
  const int* ids = a.ids.data_as<int>();
  auto& machine = simt::Machine::get();
  machine.run({1}, gpu::kSortThreads, static_cast<size_t>(gpu::moe_sort_shared_bytes(params.E)), backwards,
              [&] { gpu::moe_sort_slots<float>(ids, slots.data(), tiles.data(), num_tiles.data(), params); });
  ASSERT_LE(num_tiles[0], max_tiles);
  products(params, narrow(max_tiles), experts.data(), slots.data(), tiles.data(), num_tiles.data(),
           hidden.data(), outputs.data());
  with_float_type(p.y, [&]<typename Y>(Y) {
    machine.run({narrow(p.T) * blocks(p.H, gpu::kCombineColumns)}, gpu::kCombineColumns, 0, backwards, [&] {
      gpu::moe_combine<Y>(ids, a.weights.data_as<float>(), outputs.data(), memory_of<Y>(a.y), params);
    });
  });
}

template <typename Format, typename FormatDown, typename X, int kTiles>
void run_decode_as(const Problem& p, const Args& a, bool backwards) {
  const auto lane_k = [](auto format) {
    if constexpr (requires { decltype(format)::kLaneK; }) return decltype(format)::kLaneK;
    return 32;
  };
  run_chain<X>(p, a, 8 * kTiles, backwards,
               [&](const auto& params, int max_tiles, const auto* experts, const int* slots,
                   const auto* tiles, const int* num_tiles, X* hidden, float* outputs) {
                 auto& machine = simt::Machine::get();
                 machine.run({blocks(p.I, 16), max_tiles}, gpu::row_product_threads(p.H, lane_k(Format())), 0,
                             backwards, [&] {
                               gpu::moe_gate_up_decode<Format, FormatDown, X, kTiles>(
                                   memory_of<X>(a.x), experts, slots, tiles, num_tiles, hidden, params);
                             });
                 machine.run({blocks(p.H, 16), max_tiles},
                             gpu::row_product_threads(p.I, lane_k(FormatDown())), 0, backwards, [&] {
                               gpu::moe_down_decode<Format, FormatDown, X, kTiles>(
                                   hidden, experts, slots, tiles, num_tiles, outputs, params);
                             });
               });
}

// Only the pairs of formats that cases have; every one is a compilation.
template <int kTiles>
void run_decode(const Problem& p, const Args& a, bool backwards) {
  with_float_type(p.x, [&]<typename X>(X) {
    if (p.format == ops::WeightFormat::kNvfp4 && p.format_down == ops::WeightFormat::kNvfp4)
      run_decode_as<gpu::Nvfp4Format, gpu::Nvfp4Format, X, kTiles>(p, a, backwards);
    else
      run_decode_as<gpu::MixedFormat, gpu::MixedFormat, X, kTiles>(p, a, backwards);
  });
}

template <typename Format, typename FormatDown, int kColumns>
void run_prefill_as(const Problem& p, const Args& a, bool backwards) {
  run_chain<gpu::Bf16>(
      p, a, kColumns, backwards,
      [&](const auto& params, int max_tiles, const auto* experts, const int* slots, const auto* tiles,
          const int* num_tiles, gpu::Bf16* hidden, float* outputs) {
        auto& machine = simt::Machine::get();
        const auto shared_bytes = static_cast<size_t>(gpu::tile_shared_bytes(kColumns));
        machine.run({blocks(p.I, 64), max_tiles}, gpu::kTileThreads, shared_bytes, backwards, [&] {
          gpu::moe_gate_up_prefill<Format, FormatDown, kColumns>(memory_of<gpu::Bf16>(a.x), experts, slots,
                                                                 tiles, num_tiles, hidden, params);
        });
        machine.run({blocks(p.H, 128), max_tiles}, gpu::kTileThreads, shared_bytes, backwards, [&] {
          gpu::moe_down_prefill<Format, FormatDown, kColumns>(hidden, experts, slots, tiles, num_tiles,
                                                              outputs, params);
        });
      });
}

void run_prefill(const Problem& p, const Args& a, bool backwards) {
  using enum ops::WeightFormat;
  if (p.format == kNvfp4) return run_prefill_as<gpu::Nvfp4Format, gpu::Nvfp4Format, 64>(p, a, backwards);
  if (p.format == kBF16) return run_prefill_as<gpu::Bf16Format, gpu::Nvfp4Format, 64>(p, a, backwards);
  if (p.format == kFp8Block)
    return run_prefill_as<gpu::Fp8BlockFormat, gpu::Nvfp4Format, 64>(p, a, backwards);
  FAIL() << "no case of this format is wanted";
}

// The intermediate is rounded to x's type and may round the other way.
double allowed(const Problem& p, DType output) {
  return output == DType::kBF16 ? 8e-3 : p.x == DType::kBF16 ? 5e-3 : 1e-5;
}

TEST(MoeFfnDecode, GivesTheOraclesAnswer) {
  check_cases<Problem, Args>(
      run_decode<1>, [](const auto& p) { return p.H <= 1024; }, allowed);
}

TEST(MoeFfnDecode, GivesTheOraclesAnswerInWiderTiles) {
  check_cases<Problem, Args>(
      run_decode<2>, [](const auto& p) { return p.H <= 256 && p.T > 8 && p.format == p.format_down; },
      allowed);
}

TEST(MoeFfnPrefill, GivesTheOraclesAnswer) {
  check_cases<Problem, Args>(
      run_prefill,
      [](const auto& p) {
        using enum ops::WeightFormat;
        return p.H <= 256 && p.x == DType::kBF16 && p.format_down == kNvfp4 &&
               (p.format == kNvfp4 || p.format == kBF16 || p.format == kFp8Block);
      },
      allowed);
}

}  // namespace
}  // namespace sinter::kernels_cuda
