#include "engine/pages.h"

#include "base/error.h"

namespace sinter::engine {

PagePool::PagePool(int64_t num_pages) : is_taken_(static_cast<size_t>(num_pages)) {
  SINTER_CHECK(num_pages >= 0 && num_pages <= INT32_MAX, "{} pages", num_pages);
  free_.reserve(is_taken_.size());
  for (int64_t page = num_pages - 1; page >= 0; --page) free_.push_back(static_cast<int32_t>(page));
}

int32_t PagePool::take() {
  if (free_.empty())
    throw Error(ErrorKind::kLimit, {.where = "cache",
                                    .expected = "a free page",
                                    .found = fmt::format("all {} in use", num_pages()),
                                    .mend = "ask for a larger context or fewer sequences"});
  const int32_t page = free_.back();
  free_.pop_back();
  is_taken_[static_cast<size_t>(page)] = true;
  return page;
}

void PagePool::give_back(int32_t page) {
  SINTER_CHECK(page >= 0 && page < num_pages() && is_taken_[static_cast<size_t>(page)],
               "page {} is not taken", page);
  is_taken_[static_cast<size_t>(page)] = false;
  free_.push_back(page);
}

void PageList::grow_to(int64_t num_tokens) {
  while (static_cast<int64_t>(pages_.size()) * P_ < num_tokens) pages_.push_back(pool_->take());
}

void PageList::clear() {
  for (auto it = pages_.rbegin(); it != pages_.rend(); ++it) pool_->give_back(*it);
  pages_.clear();
}

}  // namespace sinter::engine
