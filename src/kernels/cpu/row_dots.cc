#include "kernels/cpu/row_dots.h"

#include "kernels/cpu/elements.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/e8m0.h"

namespace sinter::kernels::cpu {
namespace {

using ops::WeightFormat;

// w[n, begin..begin + count) without the scale of the tensor; `begin` is a multiple of kBlock.
void decode(const ops::Weight& weight, int64_t n, int64_t begin, int64_t count, float* values) {
  static_assert(kBlock == 128, "one tile column of kFp8Block");
  const std::byte* source = row(weight.data, n);
  const auto* codes = reinterpret_cast<const uint8_t*>(source);
  switch (weight.format) {
    case WeightFormat::kF32: return load(DType::kF32, source, begin, count, values);
    case WeightFormat::kF16: return load(DType::kF16, source, begin, count, values);
    case WeightFormat::kBF16: return load(DType::kBF16, source, begin, count, values);
    case WeightFormat::kFp8Tensor:
      for (int64_t i = 0; i < count; ++i) values[i] = numerics::from_e4m3(codes[begin + i]);
      return;
    case WeightFormat::kFp8Block: {
      const float scale = weight.scale.row<float>(n / kBlock)[begin / kBlock];
      for (int64_t i = 0; i < count; ++i) values[i] = numerics::from_e4m3(codes[begin + i]) * scale;
      return;
    }
    case WeightFormat::kNvfp4:
    case WeightFormat::kMxfp4: {
      const int64_t block = weight.format == WeightFormat::kNvfp4 ? 16 : 32;
      const uint8_t* scales = weight.scale.row<uint8_t>(n);
      for (int64_t i = 0; i < count; i += block) {
        const uint8_t code = scales[(begin + i) / block];
        const float scale =
            weight.format == WeightFormat::kNvfp4 ? numerics::from_e4m3(code) : numerics::from_e8m0(code);
        for (int64_t j = i; j < i + block; j += 2) {
          const uint8_t pair = codes[(begin + j) / 2];
          values[j] = numerics::e2m1_even(pair) * scale;
          values[j + 1] = numerics::e2m1_odd(pair) * scale;
        }
      }
      return;
    }
    case WeightFormat::kMixed: break;
  }
  SINTER_CHECK(false, "weight '{}' is {}", weight.name, ops::name(weight.format));
}

float tensor_scale(const ops::Weight& weight) {
  return weight.format == WeightFormat::kFp8Tensor || weight.format == WeightFormat::kNvfp4
             ? weight.scale_tensor
             : 1;
}

}  // namespace

void row_dots(const ops::Weight& weight, int64_t n, DType x_dtype, std::span<const std::byte* const> x,
              float* sums) {
  SINTER_CHECK(x.size() <= kRowsAtOnce, "{} rows", x.size());
  LaneSum lanes[kRowsAtOnce];
  for_blocks(0, weight.K, [&](int64_t begin, int64_t count) {
    float w[kBlock], values[kBlock];
    decode(weight, n, begin, count, w);
    for (size_t j = 0; j < x.size(); ++j) {
      load(x_dtype, x[j], begin, count, values);
      lanes[j].add_products(w, values, count);
    }
  });
  for (size_t j = 0; j < x.size(); ++j) sums[j] = lanes[j].total() * tensor_scale(weight);
}

}  // namespace sinter::kernels::cpu
