// A mixture-of-experts layer over any form of NVFP4 matrix (RowMajor<Nvfp4Format> or Nvfp4Tile, called Form
// below). Belongs inside a target region.
//
//   workers        | rows of gate and up    | rows of down           | rows of y
//   prepare x  --- | expert by expert       | expert by expert       | slots of a token
//             wait | gate, up, silu -> h ---|-> down -> slot sums    | in their order -> y
//                                      wait
//
// A worker has the same rows of every expert, so its weights are one run of memory per matrix, and the next
// run is known: prefetching goes on across matrices and experts. A slot is one (token, expert) pair; every
// slot's sums are kept until the end, so that a token's experts are added in its own order whatever else is
// in the batch. That costs 2 x 4 H bytes a slot in cache, under 2 % of the weights at I = 256.
#pragma once

namespace sinter::kernels::cpu {
namespace {

// Slots sorted by expert, in the workspace.
struct SlotLists {
  int32_t* slots;    // [S]
  int32_t* experts;  // those that are hit, ascending
  int32_t* begins;   // of an expert's slots, one more than there are experts
  int num_experts = 0;

  SlotLists(std::byte* memory, int64_t num_slots, int64_t E)
      : slots(reinterpret_cast<int32_t*>(memory)), experts(slots + num_slots), begins(experts + E) {}
  static int64_t bytes(int64_t num_slots, int64_t E) { return (num_slots + 2 * E + 1) * 4; }

  void sort(const int32_t* ids, int64_t num_slots, int64_t E) {
    std::fill_n(begins, E + 1, 0);
    for (int64_t slot = 0; slot < num_slots; ++slot)
      if (ids[slot] >= 0) ++begins[ids[slot] + 1];
    for (int64_t e = 0; e < E; ++e) begins[e + 1] += begins[e];
    std::copy_n(begins, E, experts);
    for (int64_t slot = 0; slot < num_slots; ++slot)
      if (ids[slot] >= 0) slots[experts[ids[slot]]++] = static_cast<int32_t>(slot);
    num_experts = 0;
    for (int32_t e = 0; e < static_cast<int32_t>(E); ++e) {
      if (begins[e] == begins[e + 1]) continue;
      begins[num_experts] = begins[e];
      experts[num_experts++] = e;
    }
    begins[num_experts] = begins[E];
  }
};

// The workspace, every part aligned to 64 bytes.
template <class Form>
struct MoeSpace {
  int64_t x, h, gate, slot_sums, lists, end;

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
    lists = take(SlotLists::bytes(num_slots, p.E));
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
        lists_(context.workspace.data() + MoeSpace<Form>(problem).lists, problem.T * problem.A, problem.E) {
    const MoeSpace<Form> space(problem);
    std::byte* memory = context.workspace.data();
    x_ = reinterpret_cast<X*>(memory + space.x);
    h_ = reinterpret_cast<X*>(memory + space.h);
    gate_ = reinterpret_cast<float*>(memory + space.gate);
    slot_sums_ = reinterpret_cast<float*>(memory + space.slot_sums);
    lists_.sort(args.ids.data_as<int32_t>(), problem.T * problem.A, problem.E);
  }

  void work(int worker_idx) {
    prepare_part<Form>(
        pool_, worker_idx, p_.T, p_.H, [&](int64_t t) { return a_.x.template row<uint16_t>(t); }, x_);
    clear_padding(worker_idx);
    pool_.barrier();
    gate_up(worker_idx);
    pool_.barrier();
    down(worker_idx);
    combine(worker_idx);
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
          [&](int64_t j, int64_t row, const float* sums) {
            std::memcpy(slot_sums_ + slots[j] * stride + row, sums, kGroup * sizeof *sums);
          });
    }
  }

  // The rows that this worker has just summed.
  void combine(int worker_idx) {
    const int64_t stride = MoeSpace<Form>::rounded(p_.H);
    const auto [begin, end] = pool_.part(worker_idx, stride / kGroup);
    for (int64_t t = 0; t < p_.T; ++t) {
      const int32_t* ids = a_.ids.data_as<int32_t>() + t * p_.A;
      const float* weights = a_.weights.data_as<float>() + t * p_.A;
      for (int64_t row = begin * kGroup; row < end * kGroup; row += kGroup) {
        alignas(64) float sums[kGroup];
        for (int v = 0; v < kGroup; v += kWidth) {
          Floats sum = zeros();
          for (int64_t slot = 0; slot < p_.A; ++slot)
            if (ids[slot] >= 0)
              sum = multiply_add(all(weights[slot]), load(slot_sums_ + (t * p_.A + slot) * stride + row + v),
                                 sum);
          store(sums + v, sum);
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
  X* x_ = nullptr;              // [T, H] prepared
  X* h_ = nullptr;              // [S, I] prepared
  float* gate_ = nullptr;       // [up to kTokenBlock, I]
  float* slot_sums_ = nullptr;  // [S, H]
};

template <class Form>
void launch_moe_ffn(LaunchContext& context, const ops::Problem& problem, const ops::Args& args,
                    const Config&) {
  MoeStep<Form> step(context, std::get<ops::MoeFfnProblem>(problem), std::get<ops::MoeFfnArgs>(args));
  context.pool.run([&](int worker_idx) { step.work(worker_idx); });
}

}  // namespace
}  // namespace sinter::kernels::cpu
