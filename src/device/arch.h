// The one table of GPU architectures. Whether an architecture can do something is asked here, by the name of
// the feature; its number is compared nowhere else.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sinter {

struct Arch {
  std::string_view name;       // "sm_90a": what NVRTC is told, and what its cubins run on
  int major, minor;            // compute capability
  int64_t block_shared_bytes;  // shared memory a block may have, opted in
  int64_t sm_shared_bytes;     // of one multiprocessor
  int64_t sm_registers;        // 32-bit ones of one multiprocessor
  int sm_threads;              // resident at most
  // Instructions. Each is a macro SINTER_HAS_<NAME> in device code.
  bool has_fp8_convert;       // cvt of e4m3 pairs in hardware
  bool has_fp8_mma;           // mma.sync with e4m3
  bool has_fp4_convert;       // cvt of e2m1 pairs in hardware
  bool has_block_scaled_mma;  // mma.sync with e2m1 and block scales
  bool has_bulk_copy;         // cp.async.bulk and mbarrier transactions (TMA)
  bool has_clusters;          // thread block clusters, distributed shared memory
  bool has_dependent_launch;  // programmatic dependent launch: griddepcontrol
  bool has_wgmma;
  bool has_tcgen05;
};

// A yes-or-no column of the table, for code that treats all of them alike.
struct ArchFeature {
  std::string_view name;  // "FP8_MMA": what follows SINTER_HAS_ in device code
  bool Arch::*has;
};

// SM80 to SM121, ascending.
std::span<const Arch> archs();
// Every has_... column, in the order of the struct.
std::span<const ArchFeature> arch_features();
// By name; nullptr when unknown.
const Arch* find_arch(std::string_view name);
// The one whose cubins a GPU of this capability runs; nullptr: too old, or unknown.
const Arch* arch_of(int major, int minor);

}  // namespace sinter
