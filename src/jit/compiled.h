// What a compile gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sinter::jit {

// What ptxas reports for one kernel. Bytes are per thread, except shared memory, which is per block.
struct KernelResources {
  std::string name;  // as the driver finds it: kernels are extern "C"
  int registers = 0;
  int64_t shared_bytes = 0;  // static; what a launch asks for comes on top
  int64_t stack_bytes = 0;   // with the functions it calls
  int64_t spill_store_bytes = 0, spill_load_bytes = 0;

  bool spills() const { return spill_store_bytes != 0 || spill_load_bytes != 0; }
  bool operator==(const KernelResources&) const = default;
};

struct Compiled {
  std::string name;  // "cuda.moe_ffn"
  std::string key;   // 32 hexadecimal digits
  std::vector<std::byte> cubin;
  std::string log;                       // the compiler's whole text: warnings and ptxas's report
  std::vector<KernelResources> kernels;  // in the order of the report
  bool from_cache = false;
};

// The report in a log of `--ptxas-options=-v`. It is the only place that tells spills, and its shared memory
// is the kernel's own: a cubin's adds 1 KiB that sm_90 and later reserve. Spills of a function that is not
// inlined count for the kernel reported before it.
std::vector<KernelResources> parse_resources(std::string_view log);

}  // namespace sinter::jit
