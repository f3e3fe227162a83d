// Where the cache rows that one token sees lie.
#pragma once

#include "ops/paged_batch.h"

namespace sinter::kernels::cpu {

class PagedRows {
 public:
  PagedRows(const ops::PagedBatch& batch, int64_t rows_per_page, int64_t t)
      : pages_(batch.page_table.row<int32_t>(batch.seq_idx.data_as<int32_t>()[t])),
        rows_per_page_(rows_per_page),
        num_visible_(int64_t{batch.positions.data_as<int32_t>()[t]} + 1) {}

  int64_t num_visible() const { return num_visible_; }  // rows 0 .. the token's own
  int64_t page(int64_t position) const { return pages_[position / rows_per_page_]; }
  int64_t offset(int64_t position) const { return position % rows_per_page_; }

 private:
  const int32_t* pages_;
  int64_t rows_per_page_;
  int64_t num_visible_;
};

}  // namespace sinter::kernels::cpu
