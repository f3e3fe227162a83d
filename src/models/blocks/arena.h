// Memory for the tensors of one step, where the context computes: taken in order, given back in scopes, never
// released. Grows while the largest step so far runs, then no step allocates.
#pragma once

#include <vector>

#include "dispatch/dispatch.h"

namespace sinter::models {

class Arena {
 public:
  // `context` outlives it.
  explicit Arena(dispatch::Context& context) : context_(context) {}

  // Uninitialised, aligned to 256 bytes, valid until the scope it was taken in ends, or reset().
  TensorView take(DType dtype, const Shape& shape);

  // At the start and at the end of a step: everything taken is void. Blocks that a growing step added become
  // one, so that the next step like it finds its memory in place and can be captured.
  void reset();

  // Gives back at its end what was taken since its begin.
  class Scope {
   public:
    explicit Scope(Arena& arena)
        : arena_(arena), block_idx_(arena.block_idx_), used_bytes_(arena.used_bytes_) {}
    ~Scope() {
      arena_.block_idx_ = block_idx_;
      arena_.used_bytes_ = used_bytes_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    size_t block_idx_, used_bytes_;
  };

 private:
  dispatch::Context& context_;
  std::vector<Buffer> blocks_;
  size_t block_idx_ = 0;   // the block that tensors are taken from; later ones are free
  size_t used_bytes_ = 0;  // of that block
};

}  // namespace sinter::models
