// A weight matrix as the device sees it.
#pragma once

namespace sinter::gpu {

// The values of ops::WeightFormat.
enum Format { kF32, kF16, kBF16, kFp8Tensor, kFp8Block, kNvfp4, kMxfp4, kMixed };

// ops::Weight [N, K] in the checkpoint's form, row-major.
struct Matrix {
  const void* data;
  const void* scale;  // as in ops::Weight, null where the format has none
  float scale_tensor;
  int format;
};

}  // namespace sinter::gpu
