#include "kernels_cuda/case_check.h"
#include "kernels_cuda/device_types.h"

#define SINTER_FORMAT Format
#define SINTER_X X
#define SINTER_Y Y
#define SINTER_TILES kTiles
#undef SINTER_KERNEL
#define SINTER_KERNEL(max_threads)                               \
  template <typename Format, typename X, typename Y, int kTiles> \
  void
#include "kernels/cuda/head_linear_decode.cu"
#include "kernels/cuda/linear_decode.cu"

#define SINTER_COLUMNS kColumns
#undef SINTER_KERNEL
#define SINTER_KERNEL(max_threads)                     \
  template <typename Format, typename Y, int kColumns> \
  void
#include "kernels/cuda/head_linear_prefill.cu"
#include "kernels/cuda/linear_prefill.cu"

namespace sinter::kernels_cuda {
namespace {

gpu::LinearParams params_of(const ops::LinearProblem& p, const ops::LinearArgs& a) {
  return {narrow(p.T), narrow(p.N), narrow(p.K), p.accumulate, a.x.stride(0), a.y.stride(0)};
}

template <int kTiles>
void run_decode(const ops::LinearProblem& p, const ops::LinearArgs& a, bool backwards) {
  with_format_type(p.format, [&]<typename Format>(Format) {
    if constexpr (!std::is_same_v<Format, gpu::MixedFormat>)
      with_float_type(p.x, [&]<typename X>(X) {
        with_float_type(p.y, [&]<typename Y>(Y) {
          simt::Machine::get().run({blocks(p.N, 16), blocks(p.T, 8 * kTiles)},
                                   gpu::row_product_threads(p.K, Format::kLaneK), 0, backwards, [&] {
                                     gpu::linear_decode<Format, X, Y, kTiles>(
                                         memory_of<X>(a.x), matrix_of(a.weight->matrix()),
                                         p.has_bias ? a.bias.data_as<float>() : nullptr, memory_of<Y>(a.y),
                                         params_of(p, a));
                                   });
        });
      });
  });
}

template <int kColumns>
void run_prefill(const ops::LinearProblem& p, const ops::LinearArgs& a, bool backwards) {
  with_format_type(p.format, [&]<typename Format>(Format) {
    if constexpr (requires { requires Format::kParts == 1; })
      with_float_type(p.y, [&]<typename Y>(Y) {
        simt::Machine::get().run({blocks(p.N, 128), blocks(p.T, kColumns)}, gpu::kTileThreads,
                                 static_cast<size_t>(gpu::tile_shared_bytes(kColumns)), backwards, [&] {
                                   gpu::linear_prefill<Format, Y, kColumns>(
                                       memory_of<gpu::Bf16>(a.x), matrix_of(a.weight->matrix()),
                                       p.has_bias ? a.bias.data_as<float>() : nullptr, memory_of<Y>(a.y),
                                       params_of(p, a));
                                 });
      });
  });
}

bool suits_prefill(const ops::LinearProblem& p) {
  return p.x == DType::kBF16 && p.format != ops::WeightFormat::kF32 && p.format != ops::WeightFormat::kF16 &&
         p.K <= 2048;
}

TEST(LinearDecode, GivesTheOraclesAnswer) {
  check_cases<ops::LinearProblem, ops::LinearArgs>(run_decode<1>, any<ops::LinearProblem>,
                                                   usual_error<ops::LinearProblem>);
}

TEST(LinearDecode, GivesTheOraclesAnswerInWiderTiles) {
  check_cases<ops::LinearProblem, ops::LinearArgs>(
      run_decode<2>, [](const auto& p) { return p.T > 8; }, usual_error<ops::LinearProblem>);
}

TEST(LinearPrefill, GivesTheOraclesAnswer) {
  check_cases<ops::LinearProblem, ops::LinearArgs>(run_prefill<64>, suits_prefill,
                                                   usual_error<ops::LinearProblem>);
}

TEST(LinearPrefill, GivesTheOraclesAnswerInWiderTiles) {
  check_cases<ops::LinearProblem, ops::LinearArgs>(
      run_prefill<128>, [](const auto& p) { return suits_prefill(p) && p.T > 8; },
      usual_error<ops::LinearProblem>);
}

gpu::HeadLinearParams params_of(const ops::HeadLinearProblem& p, const ops::HeadLinearArgs& a) {
  return {narrow(p.T), narrow(p.N), narrow(p.K), a.x.stride(0), a.x.stride(1), a.y.stride(0), a.y.stride(1)};
}

TEST(HeadLinearDecode, GivesTheOraclesAnswer) {
  check_cases<ops::HeadLinearProblem, ops::HeadLinearArgs>(
      [](const ops::HeadLinearProblem& p, const ops::HeadLinearArgs& a, bool backwards) {
        const auto run = [&]<typename Format>(Format) {
          with_float_type(p.x, [&]<typename X>(X) {
            with_float_type(p.y, [&]<typename Y>(Y) {
              simt::Machine::get().run({blocks(p.N, 16), blocks(p.T, 8), narrow(p.Q)},
                                       gpu::row_product_threads(p.K, Format::kLaneK), 0, backwards, [&] {
                                         gpu::head_linear_decode<Format, X, Y, 1>(
                                             memory_of<X>(a.x), a.weight.data(), memory_of<Y>(a.y),
                                             params_of(p, a));
                                       });
            });
          });
        };
        p.weight == DType::kF32 ? run(gpu::F32Format{}) : run(gpu::Bf16Format{});
      },
      any<ops::HeadLinearProblem>, usual_error<ops::HeadLinearProblem>);
}

TEST(HeadLinearPrefill, GivesTheOraclesAnswer) {
  check_cases<ops::HeadLinearProblem, ops::HeadLinearArgs>(
      [](const ops::HeadLinearProblem& p, const ops::HeadLinearArgs& a, bool backwards) {
        with_float_type(p.y, [&]<typename Y>(Y) {
          simt::Machine::get().run({blocks(p.N, 128), blocks(p.T, 64), narrow(p.Q)}, gpu::kTileThreads,
                                   static_cast<size_t>(gpu::tile_shared_bytes(64)), backwards, [&] {
                                     gpu::head_linear_prefill<void, Y, 64>(
                                         memory_of<gpu::Bf16>(a.x), memory_of<gpu::Bf16>(a.weight),
                                         memory_of<Y>(a.y), params_of(p, a));
                                   });
        });
      },
      [](const auto& p) { return p.x == DType::kBF16 && p.weight == DType::kBF16; },
      usual_error<ops::HeadLinearProblem>);
}

}  // namespace
}  // namespace sinter::kernels_cuda
