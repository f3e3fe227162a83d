// What files of vector code include before their target region: everything that is not vector code itself.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "kernels/cpu/paged_rows.h"
#include "kernels/cpu/rank_key.h"
#include "kernels/cpu/target.h"
#include "kernels/kernel.h"
#include "numerics/bf16.h"
#include "numerics/e4m3.h"
#include "numerics/fp8.h"
#include "numerics/nvfp4.h"

#if defined(SINTER_EMULATE_AVX512)  // speed is not the point there, compile time is
#define SINTER_INLINE inline
#define SINTER_UNROLL
#else
#define SINTER_INLINE inline __attribute__((always_inline))
#ifdef __clang__
#define SINTER_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SINTER_UNROLL _Pragma("GCC unroll 32")
#endif
#endif

namespace sinter::kernels::cpu {

inline Support needs_avx2(const DeviceInfo& device) {
  return device.cpu.avx2 ? Support::yes() : Support::no("needs AVX2 with FMA and F16C, which this CPU lacks");
}

inline Support needs_avx512(const DeviceInfo& device) {
  std::string missing;
  if (!device.cpu.avx512) missing += " F/BW/DQ/VL";
  if (!device.cpu.avx512_vbmi) missing += " VBMI";
  if (!device.cpu.avx512_bf16) missing += " BF16";
  if (missing.empty()) return Support::yes();
  return Support::no("needs AVX-512, of which this CPU lacks" + missing);
}

inline Support needs_avx512_vnni(const DeviceInfo& device) {
  if (device.cpu.avx512 && device.cpu.avx512_vbmi && device.cpu.avx512_vnni) return Support::yes();
  return Support::no("needs AVX-512 F/BW/DQ/VL, VBMI and VNNI, which this CPU lacks");
}

// What the vector kernels of an op take, instructions aside. Activations are bf16 throughout: float32 ones
// belong to the oracle.
inline Support takes(const ops::LinearProblem& p, ops::WeightFormat format) {
  if (p.format != format) return Support::no("is for " + std::string(name(format)) + " weights");
  if (p.x != DType::kBF16) return Support::no("needs bf16 activations");
  return Support::yes();
}
inline Support takes(const ops::HeadLinearProblem& p) {
  if (p.weight != DType::kBF16) return Support::no("is for bf16 weights");
  if (p.x != DType::kBF16) return Support::no("needs bf16 activations");
  return Support::yes();
}
inline Support takes(const ops::MoeFfnProblem& p) {
  if (p.format != ops::WeightFormat::kNvfp4 || p.format_down != ops::WeightFormat::kNvfp4)
    return Support::no("is for nvfp4 weights");
  if (p.x != DType::kBF16) return Support::no("needs bf16 activations");
  return Support::yes();
}

inline constexpr int64_t kMaxHeadColumns = 1024;  // of keys and values: working memory is on the stack
template <class Problem>
Support takes_attention(const Problem& p, int64_t key_columns, int64_t value_columns) {
  if (p.q != DType::kBF16 || p.cache != DType::kBF16) return Support::no("needs queries and cache in bf16");
  if (key_columns > kMaxHeadColumns || value_columns > kMaxHeadColumns)
    return Support::no("takes heads of at most " + std::to_string(kMaxHeadColumns) + " columns");
  return Support::yes();
}
inline Support takes(const ops::MlaAttentionProblem& p) { return takes_attention(p, p.C + p.R, p.C); }
inline Support takes(const ops::GqaAttentionProblem& p) { return takes_attention(p, p.D, p.Dv); }
inline Support takes(const ops::IndexerProblem& p) {
  if (p.q != DType::kBF16 || p.cache != DType::kBF16) return Support::no("needs queries and cache in bf16");
  return Support::yes();
}

// The first reason against, if any.
inline Support both(Support first, Support second) { return first ? std::move(second) : std::move(first); }

// Where a worker's stream of weights ends, and which address it reads next: prefetching runs on there.
struct Ahead {
  const uint8_t* end;
  const uint8_t* next;

  SINTER_INLINE const uint8_t* at(const uint8_t* address) const {
    return address < end ? address : next + (address - end);
  }
};

// Any of eight e4m3 codes with an exponent of zero.
SINTER_INLINE bool has_subnormal_e4m3(uint64_t codes) {
  const uint64_t exponents = codes & 0x7878787878787878;
  return ((exponents - 0x0101010101010101) & ~exponents & 0x8080808080808080) != 0;
}

// L2, 9 KB ahead: best for kernels that read one stream, on a Zen 4 (to L1: a third less; left to the
// hardware: half).
inline constexpr int64_t kPrefetchBytes = 9216;
SINTER_INLINE void prefetch(const uint8_t* address) { __builtin_prefetch(address, 0, 2); }

}  // namespace sinter::kernels::cpu
