// What a GPU can do at best: measure/gpu_ceilings.cc times these. SINTER_UNROLLED: lines that a thread has in
// flight.
#include "gpu/line.h"
#include "gpu/mma.h"

namespace sinter::gpu {

constexpr int kCeilingThreads = 512;

// Every line of `source` once. `sink` is written only when the sum is `never`, which keeps the reads alive.
SINTER_KERNEL(kCeilingThreads)
ceiling_read(const Line* source, I64 num_lines, U32 never, U32* sink) {
  const I64 step = static_cast<I64>(num_blocks_x()) * num_threads();
  I64 i = static_cast<I64>(block_x()) * num_threads() + thread_idx();
  U32 sum = 0;
  for (; i + (SINTER_UNROLLED - 1) * step < num_lines; i += SINTER_UNROLLED * step) {
    Line lines[SINTER_UNROLLED];
    SINTER_UNROLL
    for (int j = 0; j < SINTER_UNROLLED; ++j) lines[j] = load_streamed(source + i + j * step);
    SINTER_UNROLL
    for (int j = 0; j < SINTER_UNROLLED; ++j)
      sum ^= lines[j].word[0] ^ lines[j].word[1] ^ lines[j].word[2] ^ lines[j].word[3];
  }
  for (; i < num_lines; i += step) sum ^= load_streamed(source + i).word[0];
  if (sum == never) *sink = sum;
}

SINTER_KERNEL(kCeilingThreads)
ceiling_copy(const Line* source, Line* target, I64 num_lines) {
  const I64 step = static_cast<I64>(num_blocks_x()) * num_threads();
  I64 i = static_cast<I64>(block_x()) * num_threads() + thread_idx();
  for (; i + (SINTER_UNROLLED - 1) * step < num_lines; i += SINTER_UNROLLED * step) {
    Line lines[SINTER_UNROLLED];
    SINTER_UNROLL
    for (int j = 0; j < SINTER_UNROLLED; ++j) lines[j] = load_streamed(source + i + j * step);
    SINTER_UNROLL
    for (int j = 0; j < SINTER_UNROLLED; ++j) target[i + j * step] = lines[j];
  }
  for (; i < num_lines; i += step) target[i] = load_streamed(source + i);
}

// `num_steps` times eight independent mma.sync a warp. `seed` gives the operands: a compiler cannot know them,
// and no power is saved on zeros.
SINTER_KERNEL(kCeilingThreads)
ceiling_mma(int num_steps, U32 seed, float* sink) {
  constexpr int kChains = 8;
  U32 state = seed + static_cast<U32>(block_x() * num_threads() + thread_idx()) * 2654435761u;
  // Random bf16 pairs of magnitude 1 to 2.
  const auto draw = [&state] {
    state = state * 1664525u + 1013904223u;
    return (state & 0x807f807fu) | 0x3f803f80u;
  };
  U32 a[4], b[kChains][2];
  for (U32& pair : a) pair = draw();
  SINTER_UNROLL
  for (int chain = 0; chain < kChains; ++chain) {
    b[chain][0] = draw();
    b[chain][1] = draw();
  }
  float sums[kChains][4] = {};
  for (int step = 0; step < num_steps; ++step) {
    SINTER_UNROLL
    for (int chain = 0; chain < kChains; ++chain) mma(sums[chain], a, b[chain]);
  }
  float total = 0;
  for (const auto& sum : sums) total += sum[0] + sum[1] + sum[2] + sum[3];
  if (total == -1.5f) *sink = total;  // never, and the compiler cannot know
}

SINTER_KERNEL(kCeilingThreads)
ceiling_nothing() {}

}  // namespace sinter::gpu
