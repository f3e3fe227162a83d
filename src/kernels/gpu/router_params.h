// Numbers of cuda.router. Grid (ceil(T / kRouterTokens)), 32 * kRouterTokens threads,
// router_shared_bytes(E) of dynamic shared memory.
#pragma once

namespace sinter::gpu {

constexpr int kRouterTokens = 4;  // of a block, a warp each
constexpr int kMaxGroups = 32;    // num_groups at most
constexpr int kMaxRouterExperts = 2048;

struct RouterParams {
  int T, E, A;
  int is_softmax;  // else sigmoid
  int num_groups, topk_groups;
  int normalize;
  float scale;
};

#ifndef __CUDACC_RTC__  // for hosts: NVRTC takes no host functions
constexpr int router_shared_bytes(int E) { return kRouterTokens * (E + kMaxGroups) * 8; }
#endif

}  // namespace sinter::gpu
