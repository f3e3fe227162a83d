// What NVIDIA's management library, libnvidia-ml.so.1, tells of a GPU's state: power, clocks, links. Opened
// by name; reads only, changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// name, parameters. The names carry their version.
#define SINTER_NVML_FUNCTIONS(X)                                                                   \
  X(nvmlInit_v2, ())                                                                               \
  X(nvmlSystemGetDriverVersion, (char* text, unsigned size))                                       \
  X(nvmlDeviceGetHandleByPciBusId_v2, (const char* id, nvmlDevice_t*))                             \
  X(nvmlDeviceGetPowerUsage, (nvmlDevice_t, unsigned* milliwatts))                                 \
  X(nvmlDeviceGetEnforcedPowerLimit, (nvmlDevice_t, unsigned* milliwatts))                         \
  X(nvmlDeviceGetPowerManagementDefaultLimit, (nvmlDevice_t, unsigned* milliwatts))                \
  X(nvmlDeviceGetPowerManagementLimitConstraints, (nvmlDevice_t, unsigned* least, unsigned* most)) \
  X(nvmlDeviceGetClockInfo, (nvmlDevice_t, int type, unsigned* mhz))                               \
  X(nvmlDeviceGetMaxClockInfo, (nvmlDevice_t, int type, unsigned* mhz))                            \
  X(nvmlDeviceGetCurrentClocksThrottleReasons, (nvmlDevice_t, unsigned long long* reasons))        \
  X(nvmlDeviceGetCurrPcieLinkGeneration, (nvmlDevice_t, unsigned* generation))                     \
  X(nvmlDeviceGetMaxPcieLinkGeneration, (nvmlDevice_t, unsigned* generation))                      \
  X(nvmlDeviceGetCurrPcieLinkWidth, (nvmlDevice_t, unsigned* lanes))                               \
  X(nvmlDeviceGetMaxPcieLinkWidth, (nvmlDevice_t, unsigned* lanes))                                \
  X(nvmlDeviceGetPersistenceMode, (nvmlDevice_t, int* enabled))                                    \
  X(nvmlDeviceGetEccMode, (nvmlDevice_t, int* current, int* pending))                              \
  X(nvmlDeviceGetTotalEccErrors, (nvmlDevice_t, int type, int counter, unsigned long long*))       \
  X(nvmlDeviceGetTemperature, (nvmlDevice_t, int sensor, unsigned* celsius))                       \
  X(nvmlDeviceGetMemoryInfo, (nvmlDevice_t, nvmlMemory_t*))

namespace sinter {

namespace nvml_abi {
using nvmlReturn_t = int;
using nvmlDevice_t = struct nvmlDevice_st*;
struct nvmlMemory_t {
  unsigned long long total, free, used;
};
inline constexpr nvmlReturn_t kSuccess = 0;
inline constexpr int kSmClock = 1, kMemoryClock = 2;
inline constexpr int kGpuTemperature = 0;
inline constexpr int kUncorrectedErrors = 1, kVolatileCounter = 0;

// NOLINTNEXTLINE(bugprone-macro-parentheses): a list of parameter types has its own
#define SINTER_NVML_TYPE(name, parameters) using name##_fn = nvmlReturn_t(*) parameters;
SINTER_NVML_FUNCTIONS(SINTER_NVML_TYPE)
#undef SINTER_NVML_TYPE
using nvmlErrorString_fn = const char* (*)(nvmlReturn_t);
}  // namespace nvml_abi

// One reading. A value that the GPU, the driver or its permissions do not give is absent.
struct GpuTelemetry {
  std::optional<double> power_w, power_limit_w, power_limit_default_w, power_limit_max_w;
  std::optional<int> sm_clock_mhz, sm_clock_max_mhz, memory_clock_mhz, memory_clock_max_mhz;
  std::optional<uint64_t> clock_limits;  // bits; see clock_limit_names
  // The generation falls when the link is idle: the maximum says what the slot and the GPU can do together.
  std::optional<int> pcie_generation, pcie_generation_max, pcie_lanes, pcie_lanes_max;
  std::optional<bool> has_persistence, has_ecc;
  std::optional<int64_t> uncorrected_ecc_errors;  // since the driver was loaded
  std::optional<int> temperature_c;
  std::optional<int64_t> memory_free_bytes, memory_total_bytes;
};

// What holds the clocks down, in words; an idle GPU and clocks that were set on purpose are among them.
std::vector<std::string_view> clock_limit_names(uint64_t clock_limits);
// Of them: power, heat and the hardware's brakes, which cost speed that somebody might want back.
bool is_throttled(uint64_t clock_limits);

class Nvml {
 public:
  // Throws nothing: without the library every reading is empty.
  explicit Nvml(const std::string& library);
  // This machine's, opened once.
  static const Nvml& instance();

  bool is_available() const { return available_; }
  const std::string& reason() const { return reason_; }                  // why not available
  const std::string& driver_version() const { return driver_version_; }  // "580.65.06"; empty: unknown
  // `pci_bus_id` as in GpuInfo: NVML and CUDA number GPUs differently.
  GpuTelemetry read(const std::string& pci_bus_id) const;

 private:
#define SINTER_NVML_MEMBER(name, parameters) nvml_abi::name##_fn name = nullptr;
  SINTER_NVML_FUNCTIONS(SINTER_NVML_MEMBER)
#undef SINTER_NVML_MEMBER
  bool available_ = false;
  std::string reason_, driver_version_;
};

}  // namespace sinter
