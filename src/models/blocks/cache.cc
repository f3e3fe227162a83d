#include <algorithm>

#include "base/error.h"
#include "dispatch/dispatch.h"
#include "dispatch/gpu_runtime.h"
#include "models/model.h"

namespace sinter::models {

std::vector<CacheTensorSpec> cache_tensors(const DecoderSpec& spec) {
  std::vector<CacheTensorSpec> tensors;
  for (int layer = 0; layer < spec.L; ++layer) {
    if (const auto* mla = std::get_if<MlaSpec>(&spec.attention)) {
      tensors.push_back({layer, "latent", mla->C + mla->R});
      if (mla->indexer && mla->indexer->is_full[static_cast<size_t>(layer)])
        tensors.push_back({layer, "index_k", mla->indexer->D});
    }
    if (const auto* gqa = std::get_if<GqaSpec>(&spec.attention)) {
      tensors.push_back({layer, "k", gqa->G * gqa->D});
      tensors.push_back({layer, "v", gqa->G * gqa->D});
    }
  }
  return tensors;
}

int64_t cache_bytes_per_token(const DecoderSpec& spec, DType dtype) {
  int64_t token_width = 0;  // bounded by the config's limits
  for (const CacheTensorSpec& tensor : cache_tensors(spec)) token_width += tensor.width;
  return token_width * static_cast<int64_t>(sinter::size_bytes(dtype));
}

Cache::Cache(const DecoderSpec& spec, int64_t num_pages, int64_t P, DType dtype,
             const dispatch::Context* context)
    : num_pages_(num_pages), P_(P), dtype_(dtype), specs_(cache_tensors(spec)) {
  const int64_t token_bytes = cache_bytes_per_token(spec, dtype);
  int64_t num_tokens = 0, total_bytes = 0;
  const bool overflows = __builtin_mul_overflow(num_pages, P, &num_tokens) ||
                         __builtin_mul_overflow(num_tokens, token_bytes, &total_bytes);
  // Pages are touched one by one as tokens come, so the system would find out too late.
  const bool on_gpu = context != nullptr && context->gpu() != nullptr;
  const uint64_t available_bytes = on_gpu
                                       ? static_cast<uint64_t>(context->gpu()->device.memory_use().free_bytes)
                                       : dispatch::available_memory_bytes();
  if (overflows || (available_bytes > 0 && static_cast<uint64_t>(total_bytes) > available_bytes))
    throw Error(
        ErrorKind::kMemory,
        {.where = fmt::format("cache for {} pages of {} tokens", num_pages, P),
         .expected = overflows ? std::string("a size that can be counted")
                               : fmt::format("{} bytes of memory", total_bytes),
         .found = fmt::format("{} available", available_bytes),
         .mend = fmt::format("ask for a context of at most {} tokens",
                             available_bytes / static_cast<uint64_t>(std::max<int64_t>(1, token_bytes)))});
  memory_ = on_gpu ? context->allocate(static_cast<size_t>(total_bytes))
                   : Buffer::host(static_cast<size_t>(total_bytes));
  size_t offset_bytes = 0;
  for (const CacheTensorSpec& tensor : specs_) {
    views_.push_back(memory_.view(dtype, {num_pages, P, tensor.width}, offset_bytes));
    offset_bytes += static_cast<size_t>(views_.back().size_bytes());
  }
}

int64_t Cache::size_bytes() const { return static_cast<int64_t>(memory_.size_bytes()); }

TensorView Cache::tensor(int layer, std::string_view name) const {
  // Sorted by layer, at most two each.
  auto it = std::ranges::lower_bound(specs_, layer, {}, &CacheTensorSpec::layer);
  for (; it != specs_.end() && it->layer == layer; ++it)
    if (it->name == name) return views_[static_cast<size_t>(it - specs_.begin())];
  SINTER_CHECK(false, "layer {} has no cache tensor '{}'", layer, name);
  return {};
}

}  // namespace sinter::models
