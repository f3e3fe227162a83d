// Pages of the cache: who has which. A page holds P tokens of all layers; sequences own whole pages.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sinter::engine {

// Hands out the pages 0..num_pages-1, the one given back last first: its memory is warm.
class PagePool {
 public:
  explicit PagePool(int64_t num_pages);

  int64_t num_pages() const { return static_cast<int64_t>(is_taken_.size()); }
  int64_t num_free() const { return static_cast<int64_t>(free_.size()); }
  int32_t take();  // throws Error(kLimit) when none is free
  void give_back(int32_t page);

 private:
  std::vector<int32_t> free_;
  std::vector<bool> is_taken_;
};

// The pages of one sequence, in the order of its positions; goes back to the pool at its end. The pool
// must outlive it.
class PageList {
 public:
  PageList(PagePool& pool, int64_t P) : pool_(&pool), P_(P) {}
  ~PageList() { clear(); }
  PageList(const PageList&) = delete;
  PageList& operator=(const PageList&) = delete;

  // Takes pages until positions 0..num_tokens-1 have a place. Throws Error(kLimit) when the pool is empty;
  // what was taken before stays.
  void grow_to(int64_t num_tokens);
  void clear();
  std::span<const int32_t> pages() const { return pages_; }

 private:
  PagePool* pool_;
  int64_t P_;
  std::vector<int32_t> pages_;
};

}  // namespace sinter::engine
