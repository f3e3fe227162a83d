// The layout kGpuRows: matrices as in the checkpoint, in a GPU's memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/gpu/matrix_params.h"
#include "kernels/kernel.h"

namespace sinter::kernels::cuda {

// Format type of device code.
std::string format_of(ops::WeightFormat format);
// Weights in 16 bytes, as row_product_threads() takes it.
int lane_k(ops::WeightFormat format);
// Whether the tile products of prefill decode it.
bool has_tile_product(ops::WeightFormat format);

size_t packed_row_bytes(const ops::Weights& weights);
void pack_rows(LaunchContext& context, const ops::Weights& weights, std::span<std::byte> packed);

// The one matrix of a linear as kernels take it, by value.
gpu::Matrix packed_matrix(const ops::PackedWeights& weights);
// The experts' matrices, gate, up and down of each: an address in the GPU's memory.
inline std::byte* packed_experts(const ops::PackedWeights& weights) { return weights.packed.data(); }

}  // namespace sinter::kernels::cuda
