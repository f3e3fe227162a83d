#include "device/nvml.h"

#include <fmt/core.h>

#include "device/shared_library.h"

namespace sinter {

using namespace nvml_abi;

namespace {

struct ClockLimit {
  uint64_t bit;
  std::string_view name;
  bool is_throttle;
};

constexpr ClockLimit kClockLimits[] = {
    {0x001, "idle", false},
    {0x002, "application clocks", false},
    {0x004, "power limit", true},
    {0x008, "hardware slowdown", true},
    {0x010, "sync boost", false},
    {0x020, "temperature (driver)", true},
    {0x040, "temperature (hardware)", true},
    {0x080, "power brake", true},
    {0x100, "display clocks", false},
    {0x200, "board limit", true},
    {0x400, "reliability limit", true},
};

// Calls a getter of one value where the library has it; absent when it refuses.
template <typename Value, typename Function, typename... Parameters>
std::optional<Value> get(Function function, Parameters... parameters) {
  Value value{};
  if (function == nullptr || function(parameters..., &value) != kSuccess) return std::nullopt;
  return value;
}

template <typename To, typename From>
std::optional<To> as(const std::optional<From>& value) {
  return value ? std::optional<To>(static_cast<To>(*value)) : std::nullopt;
}

std::optional<double> watts(const std::optional<unsigned>& milliwatts) {
  return milliwatts ? std::optional<double>(*milliwatts / 1e3) : std::nullopt;
}

}  // namespace

std::vector<std::string_view> clock_limit_names(uint64_t clock_limits) {
  std::vector<std::string_view> names;
  for (const ClockLimit& limit : kClockLimits)
    if ((clock_limits & limit.bit) != 0) names.push_back(limit.name);
  return names;
}

bool is_throttled(uint64_t clock_limits) {
  for (const ClockLimit& limit : kClockLimits)
    if (limit.is_throttle && (clock_limits & limit.bit) != 0) return true;
  return false;
}

Nvml::Nvml(const std::string& name_of_library) {
  const SharedLibrary library(name_of_library);
  if (!library.is_open()) {
    reason_ = library.is_missing()
                  ? name_of_library + " not found: no NVIDIA driver is installed"
                  : fmt::format("{} cannot be loaded: {}", name_of_library, library.reason());
    return;
  }
#define SINTER_NVML_FIND(name, parameters) name = reinterpret_cast<name##_fn>(library.find(#name));
  SINTER_NVML_FUNCTIONS(SINTER_NVML_FIND)
#undef SINTER_NVML_FIND
  if (nvmlInit_v2 == nullptr || nvmlDeviceGetHandleByPciBusId_v2 == nullptr) {
    reason_ = name_of_library + " is too old";
    return;
  }
  if (const nvmlReturn_t result = nvmlInit_v2(); result != kSuccess) {
    const auto error_text = reinterpret_cast<nvmlErrorString_fn>(library.find("nvmlErrorString"));
    reason_ = fmt::format("{} does not start: {} ({})", name_of_library,
                          error_text == nullptr ? "error" : error_text(result), result);
    return;
  }
  available_ = true;
  char text[96] = {};
  if (nvmlSystemGetDriverVersion != nullptr && nvmlSystemGetDriverVersion(text, sizeof(text) - 1) == kSuccess)
    driver_version_ = text;
}

const Nvml& Nvml::instance() {
  static const Nvml nvml("libnvidia-ml.so.1");
  return nvml;
}

GpuTelemetry Nvml::read(const std::string& pci_bus_id) const {
  GpuTelemetry reading;
  if (!available_) return reading;
  nvmlDevice_t device = nullptr;
  if (nvmlDeviceGetHandleByPciBusId_v2(pci_bus_id.c_str(), &device) != kSuccess) return reading;

  reading.power_w = watts(get<unsigned>(nvmlDeviceGetPowerUsage, device));
  reading.power_limit_w = watts(get<unsigned>(nvmlDeviceGetEnforcedPowerLimit, device));
  reading.power_limit_default_w = watts(get<unsigned>(nvmlDeviceGetPowerManagementDefaultLimit, device));
  unsigned least = 0;
  reading.power_limit_max_w =
      watts(get<unsigned>(nvmlDeviceGetPowerManagementLimitConstraints, device, &least));

  reading.sm_clock_mhz = as<int>(get<unsigned>(nvmlDeviceGetClockInfo, device, kSmClock));
  reading.sm_clock_max_mhz = as<int>(get<unsigned>(nvmlDeviceGetMaxClockInfo, device, kSmClock));
  reading.memory_clock_mhz = as<int>(get<unsigned>(nvmlDeviceGetClockInfo, device, kMemoryClock));
  reading.memory_clock_max_mhz = as<int>(get<unsigned>(nvmlDeviceGetMaxClockInfo, device, kMemoryClock));
  reading.clock_limits =
      as<uint64_t>(get<unsigned long long>(nvmlDeviceGetCurrentClocksThrottleReasons, device));

  reading.pcie_generation = as<int>(get<unsigned>(nvmlDeviceGetCurrPcieLinkGeneration, device));
  reading.pcie_generation_max = as<int>(get<unsigned>(nvmlDeviceGetMaxPcieLinkGeneration, device));
  reading.pcie_lanes = as<int>(get<unsigned>(nvmlDeviceGetCurrPcieLinkWidth, device));
  reading.pcie_lanes_max = as<int>(get<unsigned>(nvmlDeviceGetMaxPcieLinkWidth, device));

  reading.has_persistence = as<bool>(get<int>(nvmlDeviceGetPersistenceMode, device));
  int ecc = 0, pending = 0;
  if (nvmlDeviceGetEccMode != nullptr && nvmlDeviceGetEccMode(device, &ecc, &pending) == kSuccess)
    reading.has_ecc = ecc != 0;
  reading.uncorrected_ecc_errors = as<int64_t>(
      get<unsigned long long>(nvmlDeviceGetTotalEccErrors, device, kUncorrectedErrors, kVolatileCounter));
  reading.temperature_c = as<int>(get<unsigned>(nvmlDeviceGetTemperature, device, kGpuTemperature));
  if (const auto memory = get<nvmlMemory_t>(nvmlDeviceGetMemoryInfo, device)) {
    reading.memory_free_bytes = static_cast<int64_t>(memory->free);
    reading.memory_total_bytes = static_cast<int64_t>(memory->total);
  }
  return reading;
}

}  // namespace sinter
