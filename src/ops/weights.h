// Weight matrices: as a checkpoint stores them, and as a kernel wants them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tensor/buffer.h"
#include "tensor/tensor_view.h"

namespace sinter::ops {

// How one matrix W [N, K] is stored; y = x W^T.
enum class WeightFormat : uint8_t {
  kF32,
  kF16,
  kBF16,
  kFp8Tensor,  // w = e4m3 * scale_tensor
  kFp8Block,   // w = e4m3 * scale[n / 128, k / 128]
  kNvfp4,      // w = e2m1 * e4m3 scale[n, k / 16] * scale_tensor
  kMxfp4,      // w = e2m1 * e8m0 scale[n, k / 32]
  kMixed,      // of a set of matrices that do not agree
};

std::string_view name(WeightFormat format);
// Bytes of an [N, K] matrix with its scales (without the few bytes of tensor scales).
int64_t stored_bytes(WeightFormat format, int64_t N, int64_t K);

// One matrix where it lies, usually in a mapped file. Owns nothing.
struct Weight {
  WeightFormat format = WeightFormat::kBF16;
  int64_t N = 0, K = 0;
  TensorView data;         // [N, K] of the format's type; [N, K/2] e2m1x2 for the 4-bit ones
  TensorView scale;        // [N, K/16] e4m3 | [N, K/32] e8m0 | [ceil(N/128), ceil(K/128)] f32 | none
  float scale_tensor = 1;  // a decode scale: multiplies
  std::optional<float> input_scale;  // decode scale of the activations of W4A4 checkpoints: amax / 2688
  std::string name;                  // of the checkpoint's tensor, for messages
};

// The experts of one layer; gate and up keep their own tensor scales.
struct MoeWeights {
  std::vector<Weight> gate, up;  // E x [I, H]
  std::vector<Weight> down;      // E x [H, I]
};

using Weights = std::variant<Weight, MoeWeights>;

// Format of all of them, or kMixed.
WeightFormat common_format(const std::vector<Weight>& weights);

// The form a kernel reads. One is chosen at load and serves every number of tokens.
enum class WeightLayout : uint8_t {
  kNone,       // op without matrices
  kInPlace,    // as in the checkpoint, row-major
  kCpuTile16,  // NVFP4, 16 rows x 64 columns in 576 bytes: the 16 x 4 scales, then 8 lines of dwords (lane =
               // row)
  kCpuRows16,  // bf16, 16 rows interleaved by pairs of k (lane = row)
  kGpuRows,    // in a GPU's memory: one gpu::Matrix per matrix (of experts: gate, up, down of each), then
               // their bytes as in the checkpoint, every part aligned to 256
};
std::string_view name(WeightLayout layout);

// What Args carries: the source for its numbers, `packed` unless the layout is kInPlace.
struct PackedWeights {
  Weights source;
  WeightLayout layout = WeightLayout::kInPlace;
  Buffer packed;

  const Weight& matrix() const { return std::get<Weight>(source); }
  const MoeWeights& experts() const { return std::get<MoeWeights>(source); }
};

}  // namespace sinter::ops
