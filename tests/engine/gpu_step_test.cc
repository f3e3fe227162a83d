// Steps on a GPU of the fake driver: what is copied to where, and which steps are graphs.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "device/fake_gpu.h"
#include "dispatch/gpu_runtime.h"
#include "engine/decode_graphs.h"
#include "engine/step_batch.h"

namespace sinter::engine {
namespace {

std::vector<int32_t> numbers(const TensorView& tensor) {
  const auto* data = tensor.data_as<int32_t>();
  return {data, data + tensor.num_elements()};  // the fake's memory is the host's
}

class FakeGpuStep : public testing::FakeGpuTest {
 protected:
  ThreadPool pool_{1};
};

TEST_F(FakeGpuStep, TensorsKeepTheirPlaceAndOnlyChangesAreCopied) {
  dispatch::Context context(*device_, pool_);
  StepBatch batch(context, {.num_tokens = 8, .num_sequences = 2, .num_pages = 3});
  PagePool pages(6);
  PageList a(pages, 4), b(pages, 4);
  a.grow_to(9), b.grow_to(2);
  const auto copies_of = [&](const auto& action) {
    const GpuCounters before = device_->counters();
    action();
    EXPECT_EQ(device_->counters().num_allocations, before.num_allocations);
    EXPECT_EQ(device_->counters().num_synchronizations, before.num_synchronizations);
    return device_->counters().num_copies - before.num_copies;
  };
  batch.add(a, std::vector<int32_t>{11, 12, 13}, 6, LogitRows::kLast);
  batch.add(b, std::vector<int32_t>{21}, 1, LogitRows::kAll);
  models::Batch first;
  EXPECT_EQ(copies_of([&] { first = batch.view(); }), 5u);
  EXPECT_EQ(numbers(first.ids), (std::vector<int32_t>{11, 12, 13, 21}));
  EXPECT_EQ(numbers(first.paged.seq_idx), (std::vector<int32_t>{0, 0, 0, 1}));
  EXPECT_EQ(numbers(first.paged.positions), (std::vector<int32_t>{6, 7, 8, 1}));
  EXPECT_EQ(numbers(first.logit_row_ids), (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(first.paged.page_table.shape(), (Shape{2, 3}));
  EXPECT_EQ(numbers(first.paged.page_table), (std::vector<int32_t>{0, 1, 2, 3, 0, 0}));
  EXPECT_EQ(first.max_context, 9);

  // A decode step whose ids the sampler wrote: only the positions differ, and fewer logits are wanted.
  batch.clear();
  batch.device_ids(2).data_as<int32_t>()[0] = 14;
  batch.device_ids(2).data_as<int32_t>()[1] = 22;
  batch.note_device_ids(std::vector<int32_t>{14, 22});
  batch.add(a, std::vector<int32_t>{14}, 9, LogitRows::kLast);
  batch.add(b, std::vector<int32_t>{22}, 2, LogitRows::kLast);
  models::Batch second;
  EXPECT_EQ(copies_of([&] { second = batch.view(); }), 3u) << "seq_idx, positions, rows";
  EXPECT_EQ(second.ids.data(), first.ids.data());
  EXPECT_EQ(second.paged.page_table.data(), first.paged.page_table.data());
  EXPECT_EQ(numbers(second.ids), (std::vector<int32_t>{14, 22}));
  EXPECT_EQ(numbers(second.paged.seq_idx), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(numbers(second.paged.positions), (std::vector<int32_t>{9, 2}));

  // The next one differs in its positions alone; a new page then changes the table.
  for (const bool has_new_page : {false, true}) {
    batch.clear();
    if (has_new_page) b.grow_to(5);
    batch.add(a, std::vector<int32_t>{14}, 10, LogitRows::kLast);
    batch.add(b, std::vector<int32_t>{22}, 3, LogitRows::kLast);
    EXPECT_EQ(copies_of([&] { second = batch.view(); }), 1u);
  }
  EXPECT_EQ(numbers(second.paged.page_table), (std::vector<int32_t>{0, 1, 2, 3, 4, 0}));

  // Ids that somebody else puts there are copied.
  batch.clear();
  batch.add(a, std::vector<int32_t>{5}, 10, LogitRows::kLast);
  EXPECT_EQ(numbers(batch.view().ids), (std::vector<int32_t>{5}));
  batch.clear();
  EXPECT_THROW(
      {
        batch.add(a, std::vector<int32_t>(9, 1), 0, LogitRows::kNone);
        batch.view();
      },
      Error);
}

// Stands for a model: a step is one fill, and memory of steps may grow in it.
class FillingModel final : public models::Model {
 public:
  explicit FillingModel(dispatch::Context& context) : context_(context) {}
  const models::DecoderSpec& spec() const override { return spec_; }
  dispatch::Context& context() const override { return context_; }
  void set_probe(models::Probe) override {}
  DType activation_dtype() const override { return DType::kBF16; }
  void forward(const models::Batch& batch, models::Cache&, const TensorView& logits) override {
    max_contexts.push_back(batch.max_context);
    if (memory_.size_bytes() < step_bytes) context_.replace_step_memory(memory_, step_bytes);
    context_.gpu()->stream.fill(logits.data(), 1, 4);
  }

  size_t step_bytes = 100;
  std::vector<int64_t> max_contexts;  // of the steps that ran through here

 private:
  dispatch::Context& context_;
  models::DecoderSpec spec_;
  Buffer memory_;
};

TEST_F(FakeGpuStep, TheFirstStepOfABucketIsEagerTheSecondCapturedTheOthersLaunched) {
  using Ran = DecodeGraphs::Ran;
  dispatch::Context context(*device_, pool_);
  FillingModel model(context);
  models::DecoderSpec no_layers;
  models::Cache cache(no_layers, 8, 64, DType::kBF16, &context);
  const Buffer logits = context.allocate(4);
  StepBatch step(context, {.num_tokens = 4, .num_sequences = 4, .num_pages = 8});
  PagePool pages(8);
  PageList list(pages, 64);
  list.grow_to(512);
  DecodeGraphs graphs;
  const auto run = [&](int64_t position) {
    step.clear();
    step.add(list, std::vector<int32_t>{1}, position, LogitRows::kLast);
    return graphs.run(model, step.view(), cache, logits.view(DType::kF32, {1, 1}));
  };
  EXPECT_EQ(run(0), Ran::kEagerly);
  EXPECT_EQ(run(1), Ran::kCaptured);
  const GpuCounters before = device_->counters();
  for (int64_t position = 2; position < 256; ++position) ASSERT_EQ(run(position), Ran::kLaunched) << position;
  const GpuCounters after = device_->counters();
  EXPECT_EQ(after.num_graph_launches - before.num_graph_launches, 254u);
  EXPECT_EQ(after.num_allocations, before.num_allocations);
  EXPECT_EQ(after.num_synchronizations, before.num_synchronizations);
  EXPECT_EQ(after.num_copies - before.num_copies, 254u) << "the positions";
  EXPECT_EQ(run(256), Ran::kEagerly) << "the next power of two";
  EXPECT_EQ(run(257), Ran::kCaptured);
  EXPECT_EQ(run(3), Ran::kLaunched) << "both are kept";
  EXPECT_EQ(graphs.num_graphs(), 2u);
  EXPECT_EQ(model.max_contexts, (std::vector<int64_t>{256, 256, 512, 512})) << "what kernels are chosen for";

  // Memory of steps moves: what was captured holds addresses of before.
  Buffer workspace;
  context.replace_step_memory(workspace, 10);
  EXPECT_EQ(run(4), Ran::kEagerly);
  EXPECT_EQ(run(5), Ran::kCaptured);
  EXPECT_EQ(run(300), Ran::kEagerly);
  // So it does when a step needs more of it; in a capture that is an error and not a wrong graph.
  model.step_bytes = 1000;
  EXPECT_THROW(run(301), Error);
  EXPECT_FALSE(context.gpu()->stream.is_capturing());
  graphs.clear();
  EXPECT_EQ(run(6), Ran::kEagerly);
}

}  // namespace
}  // namespace sinter::engine
