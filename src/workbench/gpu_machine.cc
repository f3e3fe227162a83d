#include "workbench/gpu_machine.h"

#include <fmt/core.h>
#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "device/cuda_driver.h"
#include "jit/settings.h"

namespace fs = std::filesystem;

namespace sinter::workbench {
namespace {

double gb(int64_t size_bytes) { return static_cast<double>(size_bytes) / 1e9; }

Finding examine_driver() {
  const CudaDriverSearch& search = find_cuda_driver();
  if (!search.driver)
    return {search.is_missing ? Level::kNote : Level::kFailure, "NVIDIA driver", search.reason,
            search.is_missing ? "" : "the CPU works without it"};
  const std::string& version = Nvml::instance().driver_version();
  return {Level::kOk, "NVIDIA driver",
          fmt::format("{}for CUDA {}", version.empty() ? "" : version + ", ",
                      cuda_version_text(search.driver->version)),
          ""};
}

Finding examine_nvml() {
  const Nvml& nvml = Nvml::instance();
  if (nvml.is_available()) return {Level::kOk, "NVML", "tells power, clocks and links", ""};
  return {Level::kNote, "NVML", nvml.reason() + "; GPU clocks and power cannot be read", ""};
}

Finding examine_power(const std::string& subject, const GpuTelemetry& telemetry) {
  Finding finding{Level::kOk, subject + " power", "", ""};
  if (!telemetry.power_limit_w) return {Level::kNote, finding.subject, "the limit cannot be read", ""};
  finding.text = fmt::format("limit {:.0f} W", *telemetry.power_limit_w);
  if (telemetry.power_w) finding.text += fmt::format(", {:.0f} W now", *telemetry.power_w);
  if (telemetry.power_limit_default_w && *telemetry.power_limit_w < *telemetry.power_limit_default_w - 1) {
    finding.level = Level::kWarning;
    finding.text += fmt::format(", {:.0f} W by default", *telemetry.power_limit_default_w);
    finding.mend = fmt::format("nvidia-smi -pl {:.0f}", *telemetry.power_limit_default_w);
  }
  return finding;
}

Finding examine_clocks(const std::string& subject, const GpuTelemetry& telemetry) {
  Finding finding{Level::kOk, subject + " clocks", "", ""};
  if (!telemetry.sm_clock_max_mhz) return {Level::kNote, finding.subject, "cannot be read", ""};
  finding.text = fmt::format("{} of {} MHz, memory {} of {} MHz", telemetry.sm_clock_mhz.value_or(0),
                             *telemetry.sm_clock_max_mhz, telemetry.memory_clock_mhz.value_or(0),
                             telemetry.memory_clock_max_mhz.value_or(0));
  if (telemetry.temperature_c) finding.text += fmt::format(", {} degrees C", *telemetry.temperature_c);
  const uint64_t limits = telemetry.clock_limits.value_or(0);
  std::string names;
  for (const std::string_view name : clock_limit_names(limits))
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  if (!names.empty()) finding.text += fmt::format("; held by: {}", names);
  if (is_throttled(limits)) {
    finding.level = Level::kWarning;
    finding.mend = "nvidia-smi -q -d PERFORMANCE says what holds them: cooling, cables, or the power limit";
  }
  return finding;
}

Finding examine_pcie(const std::string& subject, const GpuTelemetry& telemetry) {
  Finding finding{Level::kOk, subject + " PCIe", "", ""};
  if (!telemetry.pcie_lanes || !telemetry.pcie_generation_max)
    return {Level::kNote, finding.subject, "the link cannot be read", ""};
  const int lanes_max = telemetry.pcie_lanes_max.value_or(*telemetry.pcie_lanes);
  finding.text = fmt::format("generation {} x{}, {} x{} now", *telemetry.pcie_generation_max, lanes_max,
                             telemetry.pcie_generation.value_or(0), *telemetry.pcie_lanes);
  if (*telemetry.pcie_lanes < lanes_max) {
    finding.level = Level::kWarning;
    finding.mend = fmt::format("a slot or riser with {} lanes: weights load {} times slower", lanes_max,
                               lanes_max / std::max(1, *telemetry.pcie_lanes));
  }
  return finding;
}

// Translation makes copies between GPUs without NVLink slow or wrong; identity mapping does not.
Finding examine_iommu(size_t num_gpus) {
  std::error_code error;
  const bool has_iommu = fs::exists("/sys/class/iommu", error) && !fs::is_empty("/sys/class/iommu", error);
  if (!has_iommu) return {Level::kOk, "IOMMU", "off, or not visible here", ""};
  std::ifstream file("/proc/cmdline");
  std::string line;
  std::getline(file, line);
  if (line.find("iommu=pt") != std::string::npos || line.find("iommu.passthrough=1") != std::string::npos)
    return {Level::kOk, "IOMMU", "on, passing through", ""};
  return {
      num_gpus > 1 ? Level::kWarning : Level::kNote, "IOMMU", "on: translates what GPUs read and write",
      num_gpus > 1 ? "kernel parameter iommu=pt, and ACS off in the firmware, for copies between GPUs" : ""};
}

Finding examine_kernel() {
  utsname names{};
  if (::uname(&names) != 0) return {Level::kNote, "kernel", "does not tell its version", ""};
  return {Level::kOk, "kernel", fmt::format("{} {}", names.sysname, names.release), ""};
}

std::vector<std::vector<bool>> read_peers(const CudaDriver& driver, size_t num_gpus) {
  std::vector<std::vector<bool>> has_access(num_gpus, std::vector<bool>(num_gpus, true));
  for (size_t i = 0; i < num_gpus; ++i)
    for (size_t j = 0; j < num_gpus; ++j)
      if (i != j) has_access[i][j] = peer_link(driver, static_cast<int>(i), static_cast<int>(j)).has_access;
  return has_access;
}

}  // namespace

int64_t free_memory_bytes(const GpuInfo& gpu) {
  const GpuTelemetry telemetry = Nvml::instance().read(gpu.pci_bus_id);
  return telemetry.memory_free_bytes.value_or(gpu.memory_bytes);
}

Finding examine_nvrtc(const jit::NvrtcFound& found, int cuda_version) {
  if (!found.nvrtc)
    return {cuda_version > 0 ? Level::kWarning : Level::kNote, "NVRTC",
            found.reason + "; device code cannot be compiled", found.mend};
  Finding finding{Level::kOk, "NVRTC",
                  fmt::format("{} ({})", found.nvrtc->version(), found.nvrtc->path().string()), ""};
  if (cuda_version == 0) return finding;
  // A driver runs what newer compilers of its own major version make, and nothing of the next one.
  const int driver_major = cuda_version / 1000, driver_minor = cuda_version % 1000 / 10;
  if (found.nvrtc->major() > driver_major) {
    finding.level = Level::kFailure;
    finding.text += fmt::format(", newer than the driver's CUDA {}", cuda_version_text(cuda_version));
    finding.mend = fmt::format("a newer driver, or pip install 'nvidia-cuda-nvrtc-cu{0}' and SINTER_NVRTC",
                               driver_major);
  } else if (found.nvrtc->major() == driver_major && found.nvrtc->minor() > driver_minor) {
    finding.text +=
        fmt::format(", newer than the driver's CUDA {}, which runs it", cuda_version_text(cuda_version));
  }
  return finding;
}

Finding examine_peers(const std::vector<std::vector<bool>>& has_access) {
  Finding finding{Level::kOk, "GPU to GPU", "every GPU reaches the memory of every other", ""};
  std::string missing;
  for (size_t i = 0; i < has_access.size(); ++i)
    for (size_t j = 0; j < has_access[i].size(); ++j)
      if (!has_access[i][j]) missing += fmt::format("{}{} to {}", missing.empty() ? "" : ", ", i, j);
  if (!missing.empty()) {
    finding.level = Level::kWarning;
    finding.text = "no access from " + missing;
    finding.mend =
        "copies go through the host: see IOMMU, ACS, and whether the driver allows it for this GPU";
  }
  return finding;
}

std::vector<Finding> examine_gpu(const GpuInfo& gpu, const GpuTelemetry& telemetry) {
  const std::string subject = fmt::format("GPU {}", gpu.device_idx);
  std::vector<Finding> findings;
  Finding found{Level::kOk, subject, "", ""};
  const int64_t total_bytes = telemetry.memory_total_bytes.value_or(gpu.memory_bytes);
  found.text = fmt::format("{}, compute capability {}.{}, {} multiprocessors, {:.1f} GB", gpu.name, gpu.major,
                           gpu.minor, gpu.num_sms, gb(total_bytes));
  if (telemetry.memory_free_bytes)
    found.text += fmt::format(", {:.1f} GB free", gb(*telemetry.memory_free_bytes));
  if (gpu.numa_node >= 0) found.text += fmt::format(", NUMA node {}", gpu.numa_node);
  if (const std::string reason = gpu.unsupported_reason(); !reason.empty()) {
    found.level = Level::kFailure;
    found.text += ": " + reason;
    found.mend = "the CPU works without it";
  }
  findings.push_back(std::move(found));
  if (!Nvml::instance().is_available() && !telemetry.power_limit_w && !telemetry.pcie_lanes) return findings;
  findings.push_back(examine_power(subject, telemetry));
  findings.push_back(examine_clocks(subject, telemetry));
  findings.push_back(examine_pcie(subject, telemetry));
  if (telemetry.has_persistence && !*telemetry.has_persistence)
    findings.push_back({Level::kWarning, subject + " persistence",
                        "off: the driver starts anew for each program", "nvidia-smi -pm 1"});
  if (telemetry.uncorrected_ecc_errors.value_or(0) > 0)
    findings.push_back(
        {Level::kFailure, subject + " memory",
         fmt::format("{} uncorrected errors since the driver started", *telemetry.uncorrected_ecc_errors),
         "reset the GPU; if they come again it is broken"});
  return findings;
}

std::vector<Finding> examine_gpus() {
  std::vector<Finding> findings;
  findings.push_back(examine_driver());
  const CudaDriverSearch& search = find_cuda_driver();
  findings.push_back(examine_nvrtc(jit::open_nvrtc(jit::settings_from_environment().nvrtc),
                                   search.driver ? search.driver->version : 0));
  findings.push_back(examine_nvml());
  if (!search.driver) return findings;

  const GpuList list = list_gpus();
  if (list.gpus.empty()) findings.push_back({Level::kFailure, "GPU", list.reason, "check nvidia-smi"});
  for (const GpuInfo& gpu : list.gpus)
    for (Finding& finding : examine_gpu(gpu, Nvml::instance().read(gpu.pci_bus_id)))
      findings.push_back(std::move(finding));
  if (list.gpus.size() > 1) {
    try {
      findings.push_back(examine_peers(read_peers(*search.driver, list.gpus.size())));
    } catch (const Error& error) {
      findings.push_back({Level::kWarning, "GPU to GPU", error.what(), ""});
    }
  }
  findings.push_back(examine_iommu(list.gpus.size()));
  findings.push_back(examine_kernel());
  return findings;
}

}  // namespace sinter::workbench
