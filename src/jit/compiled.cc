#include "jit/compiled.h"

#include <algorithm>
#include <charconv>

namespace sinter::jit {
namespace {

// The number that stands right before `unit`; 0 when the line does not have it.
int64_t number_before(std::string_view line, std::string_view unit) {
  const size_t end = line.find(unit);
  if (end == std::string_view::npos) return 0;
  const size_t before = line.find_last_not_of("0123456789", end == 0 ? 0 : end - 1);
  const size_t begin = before == std::string_view::npos ? 0 : before + 1;
  int64_t value = 0;
  std::from_chars(line.data() + begin, line.data() + end, value);
  return value;
}

}  // namespace

// Compiling entry function 'k' for 'sm_90a'
// Function properties for k
//     368 bytes stack frame, 408 bytes spill stores, 416 bytes spill loads
// Used 32 registers, used 0 barriers, 368 bytes cumulative stack size, 256 bytes smem
std::vector<KernelResources> parse_resources(std::string_view log) {
  constexpr std::string_view kEntry = "Compiling entry function '";
  std::vector<KernelResources> kernels;
  for (size_t begin = 0; begin < log.size();) {
    const size_t end = std::min(log.find('\n', begin), log.size());
    const std::string_view line = log.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with("ptxas")) continue;
    if (const size_t entry = line.find(kEntry); entry != std::string_view::npos) {
      const std::string_view name = line.substr(entry + kEntry.size());
      kernels.push_back({.name = std::string(name.substr(0, name.find('\'')))});
    }
    if (kernels.empty()) continue;
    KernelResources& kernel = kernels.back();
    kernel.spill_store_bytes += number_before(line, " bytes spill stores");
    kernel.spill_load_bytes += number_before(line, " bytes spill loads");
    kernel.registers += static_cast<int>(number_before(line, " registers"));
    kernel.shared_bytes += number_before(line, " bytes smem");
    kernel.stack_bytes = std::max({kernel.stack_bytes, number_before(line, " bytes stack frame"),
                                   number_before(line, " bytes cumulative stack size")});
  }
  return kernels;
}

}  // namespace sinter::jit
