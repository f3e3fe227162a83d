// Decode steps as CUDA graphs: one launch a step instead of one a kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "device/gpu_graph.h"
#include "models/model.h"

namespace sinter::engine {

// Of one model, one cache and one StepBatch. A bucket is a number of tokens and a power of two of context: in
// a graph the number of blocks and the choice of kernels are fixed, and follow from these.
class DecodeGraphs {
 public:
  enum class Ran { kEagerly, kCaptured, kLaunched };

  // As model.forward() with `batch`, whose tensors and whose `logits` lie where they did in the last step.
  // The first step of a bucket runs kernel by kernel, which compiles, chooses and takes memory; the second is
  // captured and launched, the others launched.
  Ran run(models::Model& model, models::Batch batch, models::Cache& cache, const TensorView& logits);
  // When cache or batch move.
  void clear() { buckets_.clear(); }
  size_t num_graphs() const;

 private:
  struct Bucket {
    int64_t num_tokens, num_sequences, max_context;
    uint64_t epoch;  // of the memory whose addresses the graph holds
    GpuGraph graph;
  };
  Bucket* find(const models::Batch& batch);
  std::vector<Bucket> buckets_;
};

}  // namespace sinter::engine
