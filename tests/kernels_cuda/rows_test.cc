// Kernels that work row by row: embedding, norms, rope, silu_mul, cache_write.
#include "kernels_cuda/case_check.h"
#include "kernels_cuda/device_types.h"

#undef SINTER_KERNEL
#define SINTER_WEIGHT Weight
#define SINTER_Y Y
#define SINTER_KERNEL(max_threads)       \
  template <typename Weight, typename Y> \
  void
#include "kernels/cuda/embedding.cu"

#define SINTER_X X
#undef SINTER_KERNEL
#define SINTER_KERNEL(max_threads)  \
  template <typename X, typename Y> \
  void
#include "kernels/cuda/layer_norm.cu"
#include "kernels/cuda/rms_norm.cu"
#include "kernels/cuda/silu_mul.cu"

#undef SINTER_KERNEL
#define SINTER_CACHE Cache
#define SINTER_KERNEL(max_threads)      \
  template <typename X, typename Cache> \
  void
#include "kernels/cuda/cache_write.cu"
#undef SINTER_KERNEL
#define SINTER_KERNEL(max_threads) \
  template <typename X>            \
  void
#include "kernels/cuda/rope.cu"

namespace sinter::kernels_cuda {
namespace {

TEST(Embedding, GivesTheOraclesAnswer) {
  check_cases<ops::EmbeddingProblem, ops::EmbeddingArgs>(
      [](const ops::EmbeddingProblem& p, const ops::EmbeddingArgs& a, bool backwards) {
        with_type(p.weight, [&]<typename Weight>(Weight) {
          with_float_type(p.y, [&]<typename Y>(Y) {
            simt::Machine::get().run({narrow(p.T)}, 64, 0, backwards, [&] {
              gpu::embedding<Weight, Y>(memory_of<int>(a.ids), memory_of<Weight>(a.weight), memory_of<Y>(a.y),
                                        {narrow(p.H)});
            });
          });
        });
      },
      any<ops::EmbeddingProblem>, usual_error<ops::EmbeddingProblem>);
}

TEST(RmsNorm, GivesTheOraclesAnswer) {
  check_cases<ops::RmsNormProblem, ops::RmsNormArgs>(
      [](const ops::RmsNormProblem& p, const ops::RmsNormArgs& a, bool backwards) {
        with_float_type(p.x, [&]<typename X>(X) {
          with_float_type(p.y, [&]<typename Y>(Y) {
            simt::Machine::get().run({narrow(p.N)}, gpu::norm_threads(p.H), 0, backwards, [&] {
              gpu::rms_norm<X, Y>(memory_of<X>(a.x), memory_of<float>(a.weight), memory_of<Y>(a.y),
                                  {narrow(p.H), p.eps, a.x.stride(0), a.y.stride(0)});
            });
          });
        });
      },
      any<ops::RmsNormProblem>, usual_error<ops::RmsNormProblem>);
}

TEST(LayerNorm, GivesTheOraclesAnswer) {
  check_cases<ops::LayerNormProblem, ops::LayerNormArgs>(
      [](const ops::LayerNormProblem& p, const ops::LayerNormArgs& a, bool backwards) {
        with_float_type(p.x, [&]<typename X>(X) {
          with_float_type(p.y, [&]<typename Y>(Y) {
            simt::Machine::get().run({narrow(p.N)}, gpu::norm_threads(p.H), 0, backwards, [&] {
              gpu::layer_norm<X, Y>(memory_of<X>(a.x), memory_of<float>(a.weight), memory_of<float>(a.bias),
                                    memory_of<Y>(a.y), {narrow(p.H), p.eps, a.x.stride(0), a.y.stride(0)});
            });
          });
        });
      },
      any<ops::LayerNormProblem>, usual_error<ops::LayerNormProblem>);
}

TEST(Rope, GivesTheOraclesAnswer) {
  check_cases<ops::RopeProblem, ops::RopeArgs>(
      [](const ops::RopeProblem& p, const ops::RopeArgs& a, bool backwards) {
        with_float_type(p.x, [&]<typename X>(X) {
          simt::Machine::get().run({narrow(p.T)}, 64, 0, backwards, [&] {
            gpu::rope<X>(memory_of<X>(a.x), memory_of<int>(a.positions), memory_of<float>(a.inv_freq),
                         {narrow(p.N), narrow(p.R), p.interleaved, p.scale, a.x.stride(0), a.x.stride(1)});
          });
        });
      },
      any<ops::RopeProblem>, usual_error<ops::RopeProblem>);
}

TEST(SiluMul, GivesTheOraclesAnswer) {
  check_cases<ops::SiluMulProblem, ops::SiluMulArgs>(
      [](const ops::SiluMulProblem& p, const ops::SiluMulArgs& a, bool backwards) {
        with_float_type(p.x, [&]<typename X>(X) {
          with_float_type(p.y, [&]<typename Y>(Y) {
            simt::Machine::get().run(
                {narrow(p.T) * blocks(p.I, gpu::kSiluMulColumns)}, 256, 0, backwards, [&] {
                  gpu::silu_mul<X, Y>(memory_of<X>(a.gate), memory_of<X>(a.up), memory_of<Y>(a.y),
                                      {narrow(p.I), a.gate.stride(0), a.up.stride(0), a.y.stride(0)});
                });
          });
        });
      },
      any<ops::SiluMulProblem>, usual_error<ops::SiluMulProblem>);
}

TEST(CacheWrite, GivesTheOraclesAnswer) {
  check_cases<ops::CacheWriteProblem, ops::CacheWriteArgs>(
      [](const ops::CacheWriteProblem& p, const ops::CacheWriteArgs& a, bool backwards) {
        with_float_type(p.x, [&]<typename X>(X) {
          with_float_type(p.cache, [&]<typename Cache>(Cache) {
            simt::Machine::get().run({narrow(p.T)}, 64, 0, backwards, [&] {
              gpu::cache_write<X, Cache>(
                  memory_of<X>(a.x), memory_of<Cache>(a.cache), memory_of<int>(a.batch.page_table),
                  memory_of<int>(a.batch.seq_idx), memory_of<int>(a.batch.positions),
                  {narrow(p.W), narrow(p.P), a.x.stride(0), a.batch.page_table.stride(0)});
            });
          });
        });
      },
      any<ops::CacheWriteProblem>, usual_error<ops::CacheWriteProblem>);
}

}  // namespace
}  // namespace sinter::kernels_cuda
