#include "engine/decode_graphs.h"

#include <algorithm>

#include "base/error.h"
#include "dispatch/gpu_runtime.h"

namespace sinter::engine {

DecodeGraphs::Bucket* DecodeGraphs::find(const models::Batch& batch) {
  const auto it = std::ranges::find_if(buckets_, [&](const Bucket& bucket) {
    return bucket.num_tokens == batch.ids.dim(0) && bucket.num_sequences == batch.paged.page_table.dim(0) &&
           bucket.max_context == batch.max_context;
  });
  return it == buckets_.end() ? nullptr : &*it;
}

DecodeGraphs::Ran DecodeGraphs::run(models::Model& model, models::Batch batch, models::Cache& cache,
                                    const TensorView& logits) {
  dispatch::Context& context = model.context();
  SINTER_CHECK(context.gpu() != nullptr, "graphs without a GPU");
  GpuStream& stream = context.gpu()->stream;
  batch.max_context = models::context_bucket(batch.max_context);
  Bucket* bucket = find(batch);
  if (bucket == nullptr || bucket->epoch != context.step_memory_epoch()) {
    model.forward(batch, cache, logits);
    if (bucket == nullptr) bucket = &buckets_.emplace_back();
    *bucket = {batch.ids.dim(0), batch.paged.page_table.dim(0), batch.max_context,
               context.step_memory_epoch(), GpuGraph()};
    return Ran::kEagerly;
  }
  const bool is_new = bucket->graph.is_empty();
  if (is_new) {
    bucket->graph = GpuGraph::capture(stream, [&] { model.forward(batch, cache, logits); });
    const GraphNodes& nodes = bucket->graph.nodes();
    SINTER_CHECK(nodes.num_allocations == 0 && nodes.num_host_calls == 0,
                 "a decode step with {} allocations and {} calls of the host", nodes.num_allocations,
                 nodes.num_host_calls);
    bucket->graph.upload(stream);
  }
  bucket->graph.launch(stream);
  return is_new ? Ran::kCaptured : Ran::kLaunched;
}

size_t DecodeGraphs::num_graphs() const {
  return static_cast<size_t>(
      std::ranges::count_if(buckets_, [](const Bucket& bucket) { return !bucket.graph.is_empty(); }));
}

}  // namespace sinter::engine
