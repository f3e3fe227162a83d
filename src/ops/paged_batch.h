// Where the tokens of a step belong: every attention-like op sees the cache through this.
#pragma once

#include "tensor/tensor_view.h"

namespace sinter::ops {

// Token t of this step is token `positions[t]` (0-based) of sequence `seq_idx[t]`. Row p of a sequence's
// cache lies in page page_table[seq, p / P] at offset p % P. A token sees rows 0..positions[t] of its own
// sequence, its own included: caches are written before they are read.
struct PagedBatch {
  TensorView page_table;  // [B, max_pages] i32; unused entries are never read
  TensorView seq_idx;     // [T] i32
  TensorView positions;   // [T] i32
};

}  // namespace sinter::ops
