#include "device/device_info.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "base/thread_pool.h"

namespace sinter {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    if (begin != std::string::npos) return line.substr(begin);
  }
  return "unknown CPU";
}

// "512K", "32M", "2147483648"; 0 for anything else, "max" included.
uint64_t parse_size(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return 0;
  const char unit = end == text.data() + text.size() ? ' ' : *end;
  return value << (unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0);
}

uint64_t cache_bytes(const std::string& level) {
  for (int i = 0; i < 8; ++i) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    if (first_line(folder + "level") == level) return parse_size(first_line(folder + "size"));
  }
  return 0;
}

// What a container may use, or what the machine has.
uint64_t memory_bytes() {
  const uint64_t physical =
      static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGE_SIZE));
  const uint64_t limit = parse_size(first_line("/sys/fs/cgroup/memory.max"));
  return limit == 0 ? physical : std::min(limit, physical);
}

// The builtin asks CPUID and, for register state, whether the system saves it (XGETBV).
CpuFeatures read_cpu() {
  __builtin_cpu_init();
  CpuFeatures cpu;
  cpu.avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  cpu.avx512 = cpu.avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  cpu.avx512_vbmi = cpu.avx512 && __builtin_cpu_supports("avx512vbmi");
  cpu.avx512_bf16 = cpu.avx512 && __builtin_cpu_supports("avx512bf16");
  cpu.avx512_vnni = cpu.avx512 && __builtin_cpu_supports("avx512vnni");
  cpu.slow_dpbf16 = cpu.avx512_bf16 && __builtin_cpu_is("intel");
  return cpu;
}

DeviceInfo read_host() {
  const char* isa = std::getenv("SINTER_CPU_ISA");
  DeviceInfo device;
  device.name = cpu_name();
  device.cpu = limit_isa(read_cpu(), isa == nullptr ? "" : isa);
  device.num_cores = num_allowed_cores();
  device.memory_bytes = memory_bytes();
  device.l2_bytes = cache_bytes("2");
  device.l3_bytes = cache_bytes("3");
  return device;
}

}  // namespace

CpuFeatures limit_isa(CpuFeatures features, std::string_view isa) {
  if (isa.empty()) return features;
  if (isa == "avx512") return {.avx2 = features.avx2, .avx512 = features.avx512};
  if (isa == "avx2") return {.avx2 = features.avx2};
  if (isa == "scalar") return {};
  throw Error(ErrorKind::kUsage, {.where = "SINTER_CPU_ISA",
                                  .expected = "scalar, avx2 or avx512",
                                  .found = fmt::format("'{}'", isa),
                                  .mend = "unset it to use all that the CPU has"});
}

const DeviceInfo& host_device() {
  static const DeviceInfo device = read_host();
  return device;
}

}  // namespace sinter
