// Every tensor of an op's arguments, for those who move all of them: to another memory, into a log.
#pragma once

#include <utility>

#include "ops/op.h"

namespace sinter::ops {

// By the names of all members: an op that gains one does not compile until it is listed here.
template <typename Function>
void for_each_tensor(PagedBatch& batch, const Function& function) {
  auto& [page_table, seq_idx, positions] = batch;
  function(page_table), function(seq_idx), function(positions);
}

template <typename Function>
void for_each_tensor(EmbeddingArgs& args, const Function& function) {
  auto& [ids, weight, y] = args;
  function(ids), function(weight), function(y);
}

template <typename Function>
void for_each_tensor(RmsNormArgs& args, const Function& function) {
  auto& [x, weight, y] = args;
  function(x), function(weight), function(y);
}

template <typename Function>
void for_each_tensor(LayerNormArgs& args, const Function& function) {
  auto& [x, weight, bias, y] = args;
  function(x), function(weight), function(bias), function(y);
}

template <typename Function>
void for_each_tensor(RopeArgs& args, const Function& function) {
  auto& [x, positions, inv_freq] = args;
  function(x), function(positions), function(inv_freq);
}

template <typename Function>
void for_each_tensor(LinearArgs& args, const Function& function) {
  auto& [x, weight, bias, y] = args;
  function(x), function(bias), function(y);
}

template <typename Function>
void for_each_tensor(HeadLinearArgs& args, const Function& function) {
  auto& [x, weight, y] = args;
  function(x), function(weight), function(y);
}

template <typename Function>
void for_each_tensor(SiluMulArgs& args, const Function& function) {
  auto& [gate, up, y] = args;
  function(gate), function(up), function(y);
}

template <typename Function>
void for_each_tensor(RouterArgs& args, const Function& function) {
  auto& [logits, bias, ids, weights] = args;
  function(logits), function(bias), function(ids), function(weights);
}

template <typename Function>
void for_each_tensor(MoeFfnArgs& args, const Function& function) {
  auto& [x, ids, weights, experts, y] = args;
  function(x), function(ids), function(weights), function(y);
}

template <typename Function>
void for_each_tensor(MlaAttentionArgs& args, const Function& function) {
  auto& [q_latent, q_pe, cache, batch, indices, y] = args;
  function(q_latent), function(q_pe), function(cache);
  for_each_tensor(batch, function);
  function(indices), function(y);
}

template <typename Function>
void for_each_tensor(GqaAttentionArgs& args, const Function& function) {
  auto& [q, k_cache, v_cache, batch, indices, y] = args;
  function(q), function(k_cache), function(v_cache);
  for_each_tensor(batch, function);
  function(indices), function(y);
}

template <typename Function>
void for_each_tensor(IndexerArgs& args, const Function& function) {
  auto& [q, w, k_cache, batch, indices] = args;
  function(q), function(w), function(k_cache);
  for_each_tensor(batch, function);
  function(indices);
}

template <typename Function>
void for_each_tensor(CacheWriteArgs& args, const Function& function) {
  auto& [x, cache, batch] = args;
  function(x), function(cache);
  for_each_tensor(batch, function);
}

template <typename Function>
void for_each_tensor(SampleArgs& args, const Function& function) {
  auto& [logits, params, history, draw_idx, ids] = args;
  function(logits), function(ids);
}

// function(TensorView&) on each, absent ones (empty views) included. Matrices behind PackedWeights and what
// an op takes from the host are no tensors of the arguments.
template <typename Function>
void for_each_tensor(Args& args, const Function& function) {
  std::visit([&](auto& of_op) { for_each_tensor(of_op, function); }, args);
}

}  // namespace sinter::ops
