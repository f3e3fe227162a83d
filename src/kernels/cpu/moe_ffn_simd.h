// A mixture-of-experts layer over any form of NVFP4 matrix (RowMajor<Nvfp4Format> or Nvfp4Tile, called Form
// below). Belongs inside a target region.
//
//   workers        | rows of gate and up    | rows of down           | rows of y
//   prepare x  --- | expert by expert       | expert by expert       |
//             wait | gate, up, silu -> h ---|-> down -> token sums --|-> y
//                                      wait
//
// A worker has the same rows of every expert, so its weights are one run of memory per matrix, and the next
// run is known: prefetching goes on across matrices and experts.
//
// A slot is one (token, expert) pair. A token's slots are added in its own order whatever else is in the
// batch. Experts come in order of first appearance, so most slots can be added as soon as they are known; one
// whose predecessors are not yet is kept until they are.
#pragma once

namespace sinter::kernels::cpu {
namespace {

// Slots by expert, in the workspace.
struct SlotLists {
  int32_t* slots;  // [S]
  int32_t*
      added_from;  // [S]: with this slot its token's slots from here on are added; kKept: not with this one
  int32_t* rest_from;  // [T]: the first slot that none was added with
  int32_t* experts;    // those that are hit, in order of appearance
  int32_t* begins;     // of an expert's slots, one more than there are experts
  int32_t* order;      // [E]: place of an expert in `experts`, or -1
  int num_experts = 0;
  static constexpr int32_t kKept = -1;

  SlotLists(std::byte* memory, int64_t T, int64_t A, int64_t E)
      : slots(reinterpret_cast<int32_t*>(memory)),
        added_from(slots + T * A),
        rest_from(added_from + T * A),
        experts(rest_from + T),
        begins(experts + E),
        order(begins + E + 1) {}
  static int64_t bytes(int64_t T, int64_t A, int64_t E) { return (2 * T * A + T + 3 * E + 1) * 4; }

  void sort(const int32_t* ids, int64_t T, int64_t A, int64_t E) {
    std::fill_n(order, E, -1);
    std::fill_n(begins, E + 1, 0);
    num_experts = 0;
    for (int64_t slot = 0; slot < T * A; ++slot) {
      if (ids[slot] < 0) continue;
      int32_t& place = order[ids[slot]];
      if (place < 0) {
        place = num_experts;
        experts[num_experts++] = ids[slot];
      }
      ++begins[place + 1];
    }
    for (int i = 0; i < num_experts; ++i) begins[i + 1] += begins[i];
    // Filling moves every begin to its end, which is the begin of the next.
    for (int64_t slot = 0; slot < T * A; ++slot)
      if (ids[slot] >= 0) slots[begins[order[ids[slot]]]++] = static_cast<int32_t>(slot);
    for (int i = num_experts; i > 0; --i) begins[i] = begins[i - 1];
    begins[0] = 0;
    for (int64_t t = 0; t < T; ++t) {
      int32_t last = -1, from = 0;
      for (int64_t a = 0; a < A; ++a) {
        const int64_t slot = t * A + a;
        if (ids[slot] < 0) continue;
        const bool is_known = order[ids[slot]] > last;  // all before it are
        added_from[slot] = is_known ? from : kKept;
        if (!is_known) continue;
        last = order[ids[slot]];
        from = static_cast<int32_t>(a + 1);
      }
      rest_from[t] = from;
    }
  }
};

// The workspace, every part aligned to 64 bytes.
template <class Form>
struct MoeSpace {
  int64_t x, h, gate, slot_sums, token_sums, lists, end;

  explicit MoeSpace(const ops::MoeFfnProblem& p) {
    constexpr auto kSize = static_cast<int64_t>(sizeof(typename Form::X));
    const int64_t num_slots = p.T * p.A;
    int64_t at = 0;
    const auto take = [&at](int64_t bytes) {
      const int64_t begin = at;
      at += (bytes + 63) / 64 * 64;
      return begin;
    };
    x = take(p.T * Form::width(p.H) * kSize);
    h = take(num_slots * Form::width(p.I) * kSize);
    gate = take(std::min<int64_t>(num_slots, kTokenBlock) * rounded(p.I) * 4);
    slot_sums = take(num_slots * rounded(p.H) * 4);
    token_sums = take(p.T * rounded(p.H) * 4);
    lists = take(SlotLists::bytes(p.T, p.A, p.E));
    end = at;
  }
  static int64_t rounded(int64_t n) { return (n + kGroup - 1) / kGroup * kGroup; }
};

template <class Form>
size_t moe_ffn_workspace(const ops::Problem& problem, const Config&) {
  return static_cast<size_t>(MoeSpace<Form>(std::get<ops::MoeFfnProblem>(problem)).end);
}

// silu(gate) * up, rounded to bf16.
SINTER_INLINE void silu_multiply(const float* gate, const float* up, float* h) {
  for (int i = 0; i < kGroup; i += kWidth) {
    const Floats g = load(gate + i);
    const Floats divisor = add(all(1.0f), exp(multiply(g, all(-1.0f))));
    store(h + i, round_bf16(multiply(divide(g, divisor), load(up + i))));
  }
}

template <class Form>
class MoeStep {
 public:
  using X = typename Form::X;
  using Matrix = typename Form::Matrix;

  MoeStep(LaunchContext& context, const ops::MoeFfnProblem& problem, const ops::MoeFfnArgs& args)
      : pool_(context.pool),
        p_(problem),
        a_(args),
        weights_(args.experts->experts()),
        packed_(reinterpret_cast<const uint8_t*>(args.experts->packed.data())),
        lists_(context.workspace.data() + MoeSpace<Form>(problem).lists, problem.T, problem.A, problem.E) {
    const MoeSpace<Form> space(problem);
    std::byte* memory = context.workspace.data();
    x_ = reinterpret_cast<X*>(memory + space.x);
    h_ = reinterpret_cast<X*>(memory + space.h);
    gate_ = reinterpret_cast<float*>(memory + space.gate);
    slot_sums_ = reinterpret_cast<float*>(memory + space.slot_sums);
    token_sums_ = reinterpret_cast<float*>(memory + space.token_sums);
    ids_ = args.ids.data_as<int32_t>();
    scores_ = args.weights.data_as<float>();
    lists_.sort(ids_, problem.T, problem.A, problem.E);
  }

  void work(int worker_idx) {
    prepare_part<Form>(
        pool_, worker_idx, p_.T, p_.H, [&](int64_t t) { return a_.x.template row<uint16_t>(t); }, x_);
    clear_padding(worker_idx);
    pool_.barrier();
    gate_up(worker_idx);
    pool_.barrier();
    down(worker_idx);
    finish(worker_idx);
  }

 private:
  Matrix gate_of(int i) const { return matrix(weights_.gate, i, 0); }
  Matrix up_of(int i) const { return matrix(weights_.up, i, Form::matrix_bytes(p_.I, p_.H)); }
  Matrix down_of(int i) const { return matrix(weights_.down, i, 2 * Form::matrix_bytes(p_.I, p_.H)); }
  Matrix matrix(const std::vector<ops::Weight>& weights, int i, int64_t offset) const {
    const int32_t e = lists_.experts[i];
    const int64_t expert_bytes = 2 * Form::matrix_bytes(p_.I, p_.H) + Form::matrix_bytes(p_.H, p_.I);
    return Form::matrix(weights[static_cast<size_t>(e)], packed_ + e * expert_bytes + offset);
  }

  // Columns of h that no row of gate and up writes.
  void clear_padding(int worker_idx) {
    const int64_t width = Form::width(p_.I), written = MoeSpace<Form>::rounded(p_.I);
    static constexpr float kZeros[kGroup] = {};
    const auto [begin, end] = pool_.part(worker_idx, p_.T * p_.A);
    for (int64_t slot = begin; slot < end; ++slot)
      for (int64_t k = written; k < Form::padded(p_.I); k += kGroup)
        Form::put16(h_ + slot * width, k, kZeros);
  }

  void gate_up(int worker_idx) {
    const int64_t stride = MoeSpace<Form>::rounded(p_.I), width = Form::width(p_.I);
    const auto [begin, end] = pool_.part(worker_idx, stride / kGroup);
    const int64_t down_begin = pool_.part(worker_idx, MoeSpace<Form>::rounded(p_.H) / kGroup).begin;
    for (int i = 0; i < lists_.num_experts; ++i) {
      const Matrix gate = gate_of(i), up = up_of(i);
      const bool is_last = i + 1 == lists_.num_experts;
      for (int32_t first = lists_.begins[i]; first < lists_.begins[i + 1]; first += kTokenBlock) {
        const int32_t* slots = lists_.slots + first;
        const int64_t count = std::min<int64_t>(kTokenBlock, lists_.begins[i + 1] - first);
        const auto x_of = [&](int64_t j) { return x_ + slots[j] / p_.A * Form::width(p_.H); };
        const uint8_t* next = first + count < lists_.begins[i + 1] ? Form::address(gate, begin)
                              : is_last                            ? Form::address(down_of(0), down_begin)
                                                                   : Form::address(gate_of(i + 1), begin);
        product<Form>(gate, begin, end, count, Form::address(up, begin), x_of,
                      [&](int64_t j, int64_t row, const float* sums) {
                        std::memcpy(gate_ + j * stride + row, sums, kGroup * sizeof *sums);
                      });
        product<Form>(up, begin, end, count, next, x_of,
                      [&](int64_t j, int64_t row, const float* sums) SINTER_VECTORISED {
                        alignas(64) float h[kGroup];
                        silu_multiply(gate_ + j * stride + row, sums, h);
                        // Rows past the last repeat it; the columns of down they meet are padding.
                        for (int64_t n = p_.I - row; n < kGroup; ++n) h[n] = 0;
                        Form::put16(h_ + slots[j] * width, row, h);
                      });
      }
    }
  }

  void down(int worker_idx) {
    const int64_t stride = MoeSpace<Form>::rounded(p_.H), width = Form::width(p_.I);
    const auto [begin, end] = pool_.part(worker_idx, stride / kGroup);
    for (int i = 0; i < lists_.num_experts; ++i) {
      const int32_t* slots = lists_.slots + lists_.begins[i];
      const uint8_t* next = i + 1 < lists_.num_experts ? Form::address(down_of(i + 1), begin) : nullptr;
      product<Form>(
          down_of(i), begin, end, lists_.begins[i + 1] - lists_.begins[i], next,
          [&](int64_t j) { return h_ + slots[j] * width; },
          [&](int64_t j, int64_t row, const float* sums) SINTER_VECTORISED {
            float* kept = slot_sums_ + slots[j] * stride + row;
            const int32_t from = lists_.added_from[slots[j]];
            if (from == SlotLists::kKept) {
              std::memcpy(kept, sums, kGroup * sizeof *sums);
              return;
            }
            const int64_t t = slots[j] / p_.A;
            for (int v = 0; v < kGroup; v += kWidth) {
              float* total = token_sums_ + t * stride + row + v;
              Floats sum = from == 0 ? zeros() : load(total);
              sum = add_kept(sum, t * p_.A + from, slots[j], row + v);
              store(total, multiply_add(all(scores_[slots[j]]), load(sums + v), sum));
            }
          });
    }
  }

  // Slots [begin, end) of a token, kept before, for kWidth rows.
  SINTER_INLINE Floats add_kept(Floats sum, int64_t begin, int64_t end, int64_t row) const {
    const int64_t stride = MoeSpace<Form>::rounded(p_.H);
    for (int64_t slot = begin; slot < end; ++slot)
      if (ids_[slot] >= 0)
        sum = multiply_add(all(scores_[slot]), load(slot_sums_ + slot * stride + row), sum);
    return sum;
  }

  // The rows that this worker has just summed.
  void finish(int worker_idx) {
    const int64_t stride = MoeSpace<Form>::rounded(p_.H);
    const auto [begin, end] = pool_.part(worker_idx, stride / kGroup);
    for (int64_t t = 0; t < p_.T; ++t) {
      const int32_t from = lists_.rest_from[t];
      for (int64_t row = begin * kGroup; row < end * kGroup; row += kGroup) {
        alignas(64) float sums[kGroup];
        for (int v = 0; v < kGroup; v += kWidth) {
          const Floats sum = from == 0 ? zeros() : load(token_sums_ + t * stride + row + v);
          store(sums + v, add_kept(sum, t * p_.A + from, (t + 1) * p_.A, row + v));
        }
        put_sums<kGroup>(sums, std::min<int64_t>(kGroup, p_.H - row), nullptr, p_.accumulate, p_.y,
                         row_address(a_.y, t), row);
      }
    }
  }

  ThreadPool& pool_;
  const ops::MoeFfnProblem& p_;
  const ops::MoeFfnArgs& a_;
  const ops::MoeWeights& weights_;
  const uint8_t* packed_;
  SlotLists lists_;
  X* x_ = nullptr;               // [T, H] prepared
  X* h_ = nullptr;               // [S, I] prepared
  float* gate_ = nullptr;        // [up to kTokenBlock, I]
  float* slot_sums_ = nullptr;   // [S, H], of slots that are kept
  float* token_sums_ = nullptr;  // [T, H]
  const int32_t* ids_ = nullptr;
  const float* scores_ = nullptr;
};

template <class Form>
void launch_moe_ffn(LaunchContext& context, const ops::Problem& problem, const ops::Args& args,
                    const Config&) {
  MoeStep<Form> step(context, std::get<ops::MoeFfnProblem>(problem), std::get<ops::MoeFfnArgs>(args));
  context.pool.run([&](int worker_idx) { step.work(worker_idx); });
}

}  // namespace
}  // namespace sinter::kernels::cpu
