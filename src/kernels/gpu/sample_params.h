// Numbers of cuda.sample. Grid (B), kSampleThreads threads. Rows and histories lie in device memory, so that
// a graph may be replayed with others.
#pragma once

namespace sinter::gpu {

constexpr int kSampleThreads = 512;  // with more, registers do not suffice on sm_12x

struct SampleParams {
  int V;
};

// A token of a history, and how often it is there.
struct TokenCount {
  int token, count;
};

// ops::SampleParams and what goes with it, of one sequence.
struct SampleRow {
  float temperature;
  int top_k;
  float top_p, min_p;
  float repetition_penalty, presence_penalty, frequency_penalty;
  int num_tokens;         // different ones of its history
  long long first_token;  // of them in `history`
  unsigned long long seed, draw_idx;
};

}  // namespace sinter::gpu
