#include "kernels/cpu/elements.h"
#include "kernels/cpu/row_dots.h"
#include "kernels/cpu/workspace_parts.h"
#include "kernels/kernel.h"

namespace sinter::kernels::cpu {
namespace {

// Slot s = t * A + a. A weight row is decoded once for all slots of its expert.
struct Parts {
  int32_t* first;     // [E + 1] where an expert's slots begin in `slots`
  int32_t* slots;     // [S] by expert, ascending; empty ones are left out
  std::byte* hidden;  // [S, I] of x's type
  float* outputs;     // [S, H] what down gives
};

Parts lay_out(const ops::MoeFfnProblem& p, WorkspaceParts& parts) {
  const int64_t S = p.T * p.A;
  return {parts.take<int32_t>(p.E + 1), parts.take<int32_t>(S),
          parts.take<std::byte>(S * p.I * static_cast<int64_t>(size_bytes(p.x))), parts.take<float>(S * p.H)};
}

size_t workspace(const ops::Problem& problem, const Config&) {
  WorkspaceParts parts;
  lay_out(std::get<ops::MoeFfnProblem>(problem), parts);
  return parts.size_bytes();
}

void sort_slots(const ops::MoeFfnProblem& p, const int32_t* ids, const Parts& parts) {
  int32_t* first = parts.first;
  std::fill(first, first + p.E + 1, 0);
  for (int64_t s = 0; s < p.T * p.A; ++s) {
    SINTER_CHECK(ids[s] < p.E, "expert {} of {}", ids[s], p.E);
    if (ids[s] >= 0) ++first[ids[s]];
  }
  for (int64_t e = 0, end = 0; e <= p.E; ++e) first[e] = static_cast<int32_t>(end += first[e]);
  // Filled from behind, each expert's end becomes its beginning.
  for (int64_t s = p.T * p.A - 1; s >= 0; --s)
    if (ids[s] >= 0) parts.slots[--first[ids[s]]] = static_cast<int32_t>(s);
}

// function(e, slots of e, at most kRowsAtOnce)
template <typename Function>
void for_slots(const ops::MoeFfnProblem& p, const Parts& parts, const Function& function) {
  for (int64_t e = 0; e < p.E; ++e)
    for (int64_t begin = parts.first[e]; begin < parts.first[e + 1]; begin += kRowsAtOnce) {
      const int64_t count = std::min(kRowsAtOnce, parts.first[e + 1] - begin);
      function(static_cast<size_t>(e),
               std::span<const int32_t>(parts.slots + begin, static_cast<size_t>(count)));
    }
}

void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<ops::MoeFfnProblem>(problem);
  const auto& a = std::get<ops::MoeFfnArgs>(args);
  const ops::MoeWeights& experts = a.experts->experts();
  WorkspaceParts carved(context.workspace.data());
  const Parts parts = lay_out(p, carved);
  const int64_t hidden_stride = p.I * static_cast<int64_t>(size_bytes(p.x));
  sort_slots(p, a.ids.data_as<int32_t>(), parts);

  for_parts(context.pool, p.I, [&](int64_t first_i, int64_t last_i) {
    for_slots(p, parts, [&](size_t e, std::span<const int32_t> slots) {
      const std::byte* x[kRowsAtOnce];
      float gate[kRowsAtOnce], up[kRowsAtOnce];
      for (size_t j = 0; j < slots.size(); ++j) x[j] = row(a.x, slots[j] / p.A);
      for (int64_t i = first_i; i < last_i; ++i) {
        row_dots(experts.gate[e], i, p.x, {x, slots.size()}, gate);
        row_dots(experts.up[e], i, p.x, {x, slots.size()}, up);
        for (size_t j = 0; j < slots.size(); ++j) {
          const float value = silu(gate[j]) * up[j];
          store(p.x, &value, i, 1, parts.hidden + slots[j] * hidden_stride);
        }
      }
    });
  });

  for_parts(context.pool, p.H, [&](int64_t first_h, int64_t last_h) {
    for_slots(p, parts, [&](size_t e, std::span<const int32_t> slots) {
      const std::byte* hidden[kRowsAtOnce];
      float sums[kRowsAtOnce];
      for (size_t j = 0; j < slots.size(); ++j) hidden[j] = parts.hidden + slots[j] * hidden_stride;
      for (int64_t h = first_h; h < last_h; ++h) {
        row_dots(experts.down[e], h, p.x, {hidden, slots.size()}, sums);
        for (size_t j = 0; j < slots.size(); ++j) parts.outputs[slots[j] * p.H + h] = sums[j];
      }
    });
  });

  for_rows(context.pool, p.T, [&](int64_t t) {
    const int32_t* ids = a.ids.row<int32_t>(t);
    const float* weights = a.weights.row<float>(t);
    for_blocks(0, p.H, [&](int64_t begin, int64_t count) {
      float y[kBlock] = {}, before[kBlock];
      for (int64_t i = 0; i < p.A; ++i) {
        if (ids[i] < 0) continue;
        const float* output = parts.outputs + (t * p.A + i) * p.H + begin;
        for (int64_t h = 0; h < count; ++h) y[h] += weights[i] * output[h];
      }
      if (p.accumulate) {
        load(p.y, row(a.y, t), begin, count, before);
        for (int64_t h = 0; h < count; ++h) y[h] += before[h];
      }
      store(p.y, y, begin, count, row(a.y, t));
    });
  });
}

}  // namespace

extern const KernelInfo moe_ffn_plain = {
    .name = "cpu.moe_ffn_plain",
    .op = ops::Op::kMoeFfn,
    .is_oracle = true,
    .layout = ops::WeightLayout::kInPlace,
    .supports = [](const ops::Problem&, const DeviceInfo&) { return Support::yes(); },
    .workspace_bytes = workspace,
    .launch = launch,
};

}  // namespace sinter::kernels::cpu
