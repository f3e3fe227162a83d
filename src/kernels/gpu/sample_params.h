// Numbers of cuda.sample. Grid (B), 1024 threads. Rows and histories lie in device memory, so that a graph
// may be replayed with others.
#pragma once

namespace sinter::gpu {

constexpr int kSampleThreads = 1024;

struct SampleParams {
  int V;
};

// ops::SampleParams and what goes with it, of one sequence.
struct SampleRow {
  float temperature;
  int top_k;
  float top_p, min_p;
  float repetition_penalty, presence_penalty, frequency_penalty;
  int num_history;
  long long history_begin;  // of its tokens in `history`
  unsigned long long seed, draw_idx;
};

}  // namespace sinter::gpu
