#include "engine/pages.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "engine/step_batch.h"

namespace sinter::engine {
namespace {

TEST(PagePool, HandsOutEveryPageOnceAndTakesThemBack) {
  PagePool pool(3);
  std::set<int32_t> taken{pool.take(), pool.take(), pool.take()};
  EXPECT_EQ(taken, (std::set<int32_t>{0, 1, 2}));
  EXPECT_THROW(pool.take(), Error);
  pool.give_back(1);
  EXPECT_EQ(pool.num_free(), 1);
  EXPECT_EQ(pool.take(), 1);
  pool.give_back(2);
  EXPECT_THROW(pool.give_back(2), Error) << "twice";
  EXPECT_THROW(pool.give_back(7), Error) << "never existed";
}

TEST(PageList, GrowsByWholePagesAndGivesAllBack) {
  PagePool pool(4);
  {
    PageList list(pool, 16);
    list.grow_to(0);
    EXPECT_TRUE(list.pages().empty());
    list.grow_to(16);
    EXPECT_EQ(list.pages().size(), 1u);
    list.grow_to(17);
    list.grow_to(5);
    EXPECT_EQ(list.pages().size(), 2u);
    PageList other(pool, 16);
    EXPECT_THROW(other.grow_to(49), Error);
    EXPECT_EQ(pool.num_free(), 0);
  }
  EXPECT_EQ(pool.num_free(), 4);
}

TEST(StepBatch, SequencesShareAStep) {
  PagePool pool(8);
  PageList a(pool, 4), b(pool, 4);
  a.grow_to(6);
  b.grow_to(1);
  StepBatch batch;
  batch.add(a, std::vector<int32_t>{10, 11}, 4, LogitRows::kLast);
  batch.add(b, std::vector<int32_t>{20}, 0, LogitRows::kAll);
  const models::Batch view = batch.view();
  EXPECT_EQ(view.max_context, 6);
  ASSERT_EQ(view.paged.page_table.shape(), (Shape{2, 2}));
  EXPECT_EQ(view.paged.page_table.row<int32_t>(0)[1], a.pages()[1]);
  EXPECT_EQ(view.paged.page_table.row<int32_t>(1)[0], b.pages()[0]);
  const auto ints = [](const TensorView& t) {
    return std::vector<int32_t>(t.data_as<int32_t>(), t.data_as<int32_t>() + t.num_elements());
  };
  EXPECT_EQ(ints(view.ids), (std::vector<int32_t>{10, 11, 20}));
  EXPECT_EQ(ints(view.paged.positions), (std::vector<int32_t>{4, 5, 0}));
  EXPECT_EQ(ints(view.paged.seq_idx), (std::vector<int32_t>{0, 0, 1}));
  EXPECT_EQ(std::vector<int32_t>(view.logit_rows.begin(), view.logit_rows.end()),
            (std::vector<int32_t>{1, 2}));
}

}  // namespace
}  // namespace sinter::engine
