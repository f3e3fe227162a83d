// Problems and arguments of some of a batch's tokens, to compare with those of the whole.
#pragma once

#include <initializer_list>

#include "ops/op.h"

namespace sinter {

inline void cut(std::initializer_list<TensorView*> views, int64_t begin, int64_t end) {
  for (TensorView* view : views) *view = view->is_empty() ? *view : view->slice(0, begin, end);
}
inline void cut(ops::RmsNormArgs& a, int64_t begin, int64_t end) { cut({&a.x, &a.y}, begin, end); }
inline void cut(ops::LayerNormArgs& a, int64_t begin, int64_t end) { cut({&a.x, &a.y}, begin, end); }
inline void cut(ops::LinearArgs& a, int64_t begin, int64_t end) { cut({&a.x, &a.y}, begin, end); }
inline void cut(ops::HeadLinearArgs& a, int64_t begin, int64_t end) { cut({&a.x, &a.y}, begin, end); }
inline void cut(ops::SiluMulArgs& a, int64_t begin, int64_t end) { cut({&a.gate, &a.up, &a.y}, begin, end); }
inline void cut(ops::RouterArgs& a, int64_t begin, int64_t end) {
  cut({&a.logits, &a.ids, &a.weights}, begin, end);
}
inline void cut(ops::MoeFfnArgs& a, int64_t begin, int64_t end) {
  cut({&a.x, &a.ids, &a.weights, &a.y}, begin, end);
}
inline void cut(ops::MlaAttentionArgs& a, int64_t begin, int64_t end) {
  cut({&a.q_latent, &a.q_pe, &a.batch.seq_idx, &a.batch.positions, &a.indices, &a.y}, begin, end);
}
inline void cut(ops::GqaAttentionArgs& a, int64_t begin, int64_t end) {
  cut({&a.q, &a.batch.seq_idx, &a.batch.positions, &a.indices, &a.y}, begin, end);
}
inline void cut(ops::IndexerArgs& a, int64_t begin, int64_t end) {
  cut({&a.q, &a.w, &a.batch.seq_idx, &a.batch.positions, &a.indices}, begin, end);
}

inline void set_num_tokens(ops::Problem& problem, int64_t num_tokens) {
  std::visit(
      [&](auto& p) {
        if constexpr (requires { p.T; }) p.T = num_tokens;
        if constexpr (requires { p.N, p.eps; }) p.N = num_tokens;  // norms count rows
      },
      problem);
}

// Tokens [begin, end) alone. An op that none of the above cuts stays whole.
inline void keep_tokens(ops::Problem& problem, ops::Args& args, int64_t begin, int64_t end) {
  std::visit(
      [&](auto& a) {
        if constexpr (requires { cut(a, begin, end); }) {
          cut(a, begin, end);
          set_num_tokens(problem, end - begin);
        }
      },
      args);
}

}  // namespace sinter
