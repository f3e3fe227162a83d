#include "workbench/machine.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <optional>

#include "base/thread_pool.h"
#include "device/device_info.h"
#include "device/shared_library.h"
#include "dispatch/dispatch.h"
#include "measure/ceilings.h"

namespace fs = std::filesystem;

namespace sinter::workbench {
namespace {

constexpr size_t kSweepBytes = size_t{1} << 29;

std::optional<std::string> first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? std::optional(line) : std::nullopt;
}

double gb(uint64_t size_bytes) { return static_cast<double>(size_bytes) / 1e9; }

Finding examine_isa(const DeviceInfo& device) {
  const CpuFeatures& cpu = device.cpu;
  Finding finding{Level::kOk, "CPU", device.name, ""};
  if (cpu.avx512) {
    finding.text += fmt::format(", AVX-512 {} VBMI, {} BF16, {} VNNI", cpu.avx512_vbmi ? "with" : "without",
                                cpu.avx512_bf16 ? "with" : "without", cpu.avx512_vnni ? "with" : "without");
  } else if (cpu.avx2) {
    finding.text += ", AVX2";
  } else {
    finding.level = Level::kWarning;
    finding.text += ", neither AVX2 nor AVX-512: plain code is used";
    finding.mend = "on a virtual machine, pass the host's CPU through";
  }
  return finding;
}

Finding examine_memory(const DeviceInfo& device) {
  const uint64_t available_bytes = dispatch::available_memory_bytes();
  return {Level::kOk, "memory",
          available_bytes == 0 ? fmt::format("{:.1f} GB", gb(device.memory_bytes))
                               : fmt::format("{:.1f} GB, {:.1f} GB of them available",
                                             gb(device.memory_bytes), gb(available_bytes)),
          ""};
}

Finding examine_huge_pages() {
  const auto setting = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  if (!setting) return {Level::kNote, "huge pages", "the kernel does not say", ""};
  if (setting->find("[never]") != std::string::npos)
    return {Level::kWarning, "huge pages", "off: weights are read through 4 KiB pages",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"};
  return {Level::kOk, "huge pages", *setting, ""};
}

int num_numa_nodes() {
  int count = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/sys/devices/system/node", error)) {
    const std::string file = entry.path().filename().string();
    count += file.starts_with("node") && file.size() > 4 && file[4] >= '0' && file[4] <= '9';
  }
  return std::max(count, 1);
}

Finding examine_numa() {
  const int num_nodes = num_numa_nodes();
  const bool is_balancing = first_line("/proc/sys/kernel/numa_balancing").value_or("0") != "0";
  if (num_nodes > 1 && is_balancing)
    return {Level::kWarning, "NUMA",
            fmt::format("{} nodes, and the kernel moves pages between them", num_nodes),
            "sysctl kernel.numa_balancing=0"};
  return {Level::kOk, "NUMA",
          num_nodes == 1 ? "one node" : fmt::format("{} nodes, automatic balancing off", num_nodes), ""};
}

Finding examine_governor() {
  const auto governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (!governor) return {Level::kNote, "CPU governor", "not visible here (usual on a virtual machine)", ""};
  if (*governor == "performance") return {Level::kOk, "CPU governor", *governor, ""};
  return {Level::kWarning, "CPU governor", *governor + ": clocks rise late",
          "cpupower frequency-set -g performance"};
}

// Whether the loader finds one of the names. No driver call is made.
Finding examine_library(std::string subject, std::initializer_list<const char*> names, const char* without) {
  std::string reason;
  for (const char* name_of_library : names) {
    const SharedLibrary library(name_of_library);
    if (library.is_open())
      return {Level::kOk, std::move(subject), std::string(name_of_library) + " found", ""};
    if (reason.empty()) reason = library.reason();
  }
  return {Level::kNote, std::move(subject), fmt::format("{}; {}", reason, without), ""};
}

}  // namespace

std::string_view name(Level level) {
  switch (level) {
    case Level::kNote: return "note";
    case Level::kOk: return "ok";
    case Level::kWarning: return "warn";
    case Level::kFailure: return "fail";
  }
  return "?";
}

double measured_read_bytes_per_s() {
  static const double measured = [] {
    ThreadPool pool;
    const uint64_t available_bytes = dispatch::available_memory_bytes();
    const size_t wanted_bytes = std::max<size_t>(kSweepBytes, 8 * host_device().l3_bytes);
    const size_t sweep_bytes =
        available_bytes == 0 ? wanted_bytes : std::min<size_t>(wanted_bytes, available_bytes / 4);
    return measure::ReadSweep(pool, sweep_bytes).run_rounds(3).median;
  }();
  return measured;
}

KnownDevice measured_cpu() {
  const DeviceInfo& device = host_device();
  return {.name = "cpu",
          .full_name = device.name,
          .read_gb_per_s = measured_read_bytes_per_s() / 1e9,
          .memory_gb = gb(device.memory_bytes),
          .bf16_tflops = 0,
          .fp8_tflops = 0,
          .fp4_tflops = 0};
}

std::vector<Finding> examine_machine() {
  const DeviceInfo& device = host_device();
  std::vector<Finding> findings;
  findings.push_back(examine_isa(device));
  findings.push_back(
      {Level::kOk, "cores", fmt::format("{} that this process may use", device.num_cores), ""});
  findings.push_back(examine_memory(device));
  findings.push_back({Level::kOk, "read bandwidth",
                      fmt::format("{:.1f} GB/s, measured", measured_read_bytes_per_s() / 1e9), ""});
  findings.push_back(examine_huge_pages());
  findings.push_back(examine_numa());
  findings.push_back(examine_governor());
  findings.push_back(examine_library("NVIDIA driver", {"libcuda.so.1"}, "no NVIDIA GPU can be used"));
  findings.push_back(examine_library("NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
                                     "device code cannot be compiled"));
  findings.push_back(examine_library("NVML", {"libnvidia-ml.so.1"}, "GPU clocks and power cannot be read"));
  return findings;
}

}  // namespace sinter::workbench
