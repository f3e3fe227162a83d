// ops::SampleProblem: a block per sequence. Probabilities are sums of integers, 2^42 for the largest one, so
// that they are exact in any order; against sums of doubles that moves a threshold by less than 1e-7.
#include "gpu/philox.h"
#include "gpu/sample_params.h"
#include "gpu/select.h"

namespace sinter::gpu {

constexpr float kOne = 0x1p42f;  // fixed point of the largest probability

SINTER_DEVICE float penalize(const SampleRow& row, float z, int count) {
  if (count == 0) return z;
  z = z > 0 ? z / row.repetition_penalty : z * row.repetition_penalty;
#if defined(__CUDACC__)  // rounded as the oracle does: a fused multiply-add would break ties otherwise
  return __fsub_rn(__fsub_rn(z, __fmul_rn(row.frequency_penalty, static_cast<float>(count))),
                   row.presence_penalty);
#else
  return z - row.frequency_penalty * static_cast<float>(count) - row.presence_penalty;
#endif
}

SINTER_DEVICE bool has_penalties(const SampleRow& row) {
  return row.repetition_penalty != 1 || row.presence_penalty != 0 || row.frequency_penalty != 0;
}

// The candidates of one sequence: keys of the tempered logits, those of rank `limit` and above.
class Candidates {
 public:
  SINTER_DEVICE Candidates(const U32* keys, int V, SelectShared& shared)
      : keys_(keys), V_(V), shared_(shared) {
    U64 largest = 0;
    for (int v = thread_idx(); v < V; v += num_threads()) largest = max_of<U64>(largest, keys[v]);
    largest_key_ = static_cast<U32>(block_max(largest, shared.scratch));
    largest_ = key_value(largest_key_);
  }

  SINTER_DEVICE void keep_top_k(U64 k) {
    keep(
        k, [&](I64 v) { return static_cast<U64>(is_in(v)); }, 1);
  }
  SINTER_DEVICE void keep_top_p(float top_p) {
    const U64 total = total_mass();
    const double wanted = static_cast<double>(top_p) * static_cast<double>(total);
    keep(
        min_of(max_of<U64>(static_cast<U64>(ceil(wanted)), 1), total), [&](I64 v) { return mass(v); }, 0);
  }
  SINTER_DEVICE void keep_min_p(float min_p) {
    U64 least = ~static_cast<U64>(largest_key_);  // inverted: the maximum is the least key
    for (int v = thread_idx(); v < V_; v += num_threads())
      if (probability(keys_[v]) >= min_p) least = max_of<U64>(least, ~static_cast<U64>(keys_[v]));
    limit_ = max_of(limit_, ~block_max(least, shared_.scratch) << 32);
  }
  // `word`: uniform over 32 bits.
  SINTER_DEVICE int draw(U32 word) {
    const U64 total = total_mass();
    const U64 passed = word * (total >> 32) + (word * (total & 0xffffffffu) >> 32);
    const auto weight = [&](I64 v) { return mass(v); };
    const Selected at = select_key(keys_, V_, passed + 1, weight, shared_);
    return static_cast<int>(tie_of(at, (passed - at.above) / mass_of(at.key)));
  }

 private:
  SINTER_DEVICE bool is_in(I64 v) const {
    return (static_cast<U64>(keys_[v]) << 32 | static_cast<U32>(~static_cast<U32>(v))) >= limit_;
  }
  // Relative to the largest. Equal values first: infinities would give NaN.
  SINTER_DEVICE float probability(U32 key) const {
    const float z = key_value(key);
    return z == largest_ ? 1.0f : expf(z - largest_);
  }
  SINTER_DEVICE U64 mass_of(U32 key) const { return static_cast<U64>(probability(key) * kOne); }
  SINTER_DEVICE U64 mass(I64 v) const { return is_in(v) ? mass_of(keys_[v]) : 0; }
  SINTER_DEVICE U64 total_mass() const {
    U64 sum = 0;
    for (int v = thread_idx(); v < V_; v += num_threads()) sum += mass(v);
    return block_sum(sum, shared_.scratch);
  }
  SINTER_DEVICE I64 tie_of(const Selected& at, U64 rank) const {
    return find_member(
        V_, rank, [&](I64 v) { return keys_[v] == at.key && is_in(v); }, shared_);
  }
  // Up to where the weight reaches `target`. each: weight of every candidate, 0: its mass.
  template <typename Weight>
  SINTER_DEVICE void keep(U64 target, const Weight& weight, U64 each) {
    const Selected at = select_key(keys_, V_, target, weight, shared_);
    if (each == 0) each = mass_of(at.key);
    const I64 v = tie_of(at, (target - at.above - 1) / each);
    limit_ = static_cast<U64>(at.key) << 32 | static_cast<U32>(~static_cast<U32>(v));
  }

  const U32* keys_;
  int V_;
  SelectShared& shared_;
  U32 largest_key_;
  float largest_;
  U64 limit_ = 0;
};

// logits [B, V], rows [B], history: tokens of all sequences, each once, keys [B, V] and counts [B, V]: workspace,
// ids [B]
SINTER_KERNEL(kSampleThreads)
sample(const float* logits, const SampleRow* rows, const TokenCount* history, U32* keys, int* counts, int* ids,
       SampleParams p) {
  SINTER_SHARED(SelectShared, shared, 1);
  begin_kernel();
  const I64 b = block_x();
  const SampleRow row = rows[b];
  logits += b * p.V;
  keys += b * p.V;
  counts += b * p.V;
  const bool penalized = has_penalties(row);
  if (penalized) {
    for (int v = thread_idx(); v < p.V; v += num_threads()) counts[v] = 0;
    sync_block();
    for (int i = thread_idx(); i < row.num_tokens; i += num_threads()) {
      const TokenCount one = history[row.first_token + i];
      counts[one.token] = one.count;
    }
    sync_block();
  }
  const auto logit = [&](int v) { return penalized ? penalize(row, logits[v], counts[v]) : logits[v]; };

  if (row.temperature == 0) {
    U64 best = 0;
    for (int v = thread_idx(); v < p.V; v += num_threads())
      best = max_of(best, rank_key(logit(v), static_cast<U32>(v)));
    best = block_max(best, shared[0].scratch);
    if (thread_idx() == 0) ids[b] = key_position(best);
    return;
  }
  for (int v = thread_idx(); v < p.V; v += num_threads()) keys[v] = order_key(logit(v) / row.temperature);
  sync_block();
  Candidates candidates(keys, p.V, shared[0]);
  if (row.top_k > 0 && row.top_k < p.V) candidates.keep_top_k(static_cast<U64>(row.top_k));
  if (row.top_p < 1) candidates.keep_top_p(row.top_p);
  if (row.min_p > 0) candidates.keep_min_p(row.min_p);
  const int chosen = candidates.draw(philox_word(row.seed, row.draw_idx));
  if (thread_idx() == 0) ids[b] = chosen;
}

}  // namespace sinter::gpu
