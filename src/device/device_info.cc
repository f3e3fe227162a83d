#include "device/device_info.h"

#include <cpuid.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "base/environment.h"
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

struct Cpuid {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;  // zero for a leaf that the CPU lacks
};

Cpuid cpuid(uint32_t leaf, uint32_t subleaf) {
  Cpuid out;
  __get_cpuid_count(leaf, subleaf, &out.eax, &out.ebx, &out.ecx, &out.edx);
  return out;
}

// Register state that the operating system saves (XCR0).
uint32_t saved_state() {
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// Bits as in Intel's manual, volume 2, CPUID.
CpuFeatures read_cpu() {
  const auto bit = [](uint32_t word, int i) { return (word >> i & 1) != 0; };
  const Cpuid vendor = cpuid(0, 0), basic = cpuid(1, 0), extended = cpuid(7, 0);
  const Cpuid more = extended.eax >= 1 ? cpuid(7, 1) : Cpuid{};
  const uint32_t state = bit(basic.ecx, 27) ? saved_state() : 0;
  constexpr uint32_t kYmmState = 0x06, kZmmState = 0xe6;
  CpuFeatures cpu;
  cpu.avx2 = (state & kYmmState) == kYmmState && bit(extended.ebx, 5) && bit(basic.ecx, 12) &&
             bit(basic.ecx, 29);  // AVX2, FMA, F16C
  cpu.avx512 = cpu.avx2 && (state & kZmmState) == kZmmState && bit(extended.ebx, 16) &&
               bit(extended.ebx, 30) && bit(extended.ebx, 17) && bit(extended.ebx, 31);  // F, BW, DQ, VL
  cpu.avx512_vbmi = cpu.avx512 && bit(extended.ecx, 1);
  cpu.avx512_vnni = cpu.avx512 && bit(extended.ecx, 11);
  cpu.avx512_bf16 = cpu.avx512 && bit(more.eax, 5);
  constexpr uint32_t kGenu = 0x756e6547;  // "Genu", of "GenuineIntel"
  cpu.slow_dpbf16 = cpu.avx512_bf16 && vendor.ebx == kGenu;
  return cpu;
}

DeviceInfo read_host() {
  DeviceInfo device;
  device.name = cpu_name();
  device.cpu = limit_isa(read_cpu(), environment().cpu_isa);
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
