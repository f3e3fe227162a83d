// Our declarations of NVML's interface against those of nvml.h. Everything is checked by the compiler.
#include "device/nvml.h"

#include <gtest/gtest.h>
#include <nvml.h>

#include <cstddef>

#include "device/abi.h"

namespace sinter {
namespace {

using testing::kSameAbi;

// What NVML calls deprecated it still has, and drivers of our oldest version have nothing else.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define SINTER_SAME_TYPE(name, parameters) \
  static_assert(kSameAbi<nvml_abi::name##_fn, decltype(&::name)>, #name);
SINTER_NVML_FUNCTIONS(SINTER_SAME_TYPE)
static_assert(kSameAbi<nvml_abi::nvmlErrorString_fn, decltype(&::nvmlErrorString)>);
static_assert(!kSameAbi<nvml_abi::nvmlDeviceGetEccMode_fn, decltype(&::nvmlDeviceGetPersistenceMode)>);
#pragma GCC diagnostic pop

static_assert(sizeof(nvml_abi::nvmlMemory_t) == sizeof(::nvmlMemory_t));
static_assert(offsetof(nvml_abi::nvmlMemory_t, free) == offsetof(::nvmlMemory_t, free));
static_assert(offsetof(nvml_abi::nvmlMemory_t, total) == offsetof(::nvmlMemory_t, total));
static_assert(nvml_abi::kSuccess == static_cast<int>(NVML_SUCCESS));
static_assert(nvml_abi::kSmClock == static_cast<int>(NVML_CLOCK_SM));
static_assert(nvml_abi::kMemoryClock == static_cast<int>(NVML_CLOCK_MEM));
static_assert(nvml_abi::kGpuTemperature == static_cast<int>(NVML_TEMPERATURE_GPU));
static_assert(nvml_abi::kUncorrectedErrors == static_cast<int>(NVML_MEMORY_ERROR_TYPE_UNCORRECTED));
static_assert(nvml_abi::kVolatileCounter == static_cast<int>(NVML_VOLATILE_ECC));

TEST(NvmlHeader, ClockLimitsHaveTheBitsOfTheHeader) {
  EXPECT_EQ(clock_limit_names(nvmlClocksThrottleReasonSwPowerCap).at(0), "power limit");
  EXPECT_EQ(clock_limit_names(nvmlClocksThrottleReasonHwSlowdown).at(0), "hardware slowdown");
  EXPECT_EQ(clock_limit_names(nvmlClocksThrottleReasonSwThermalSlowdown).at(0), "temperature (driver)");
  EXPECT_EQ(clock_limit_names(nvmlClocksThrottleReasonHwThermalSlowdown).at(0), "temperature (hardware)");
  EXPECT_EQ(clock_limit_names(nvmlClocksThrottleReasonHwPowerBrakeSlowdown).at(0), "power brake");
  EXPECT_EQ(clock_limit_names(nvmlClocksThrottleReasonGpuIdle).at(0), "idle");
  EXPECT_EQ(clock_limit_names(nvmlClocksThrottleReasonApplicationsClocksSetting).at(0), "application clocks");
  EXPECT_EQ(clock_limit_names(nvmlClocksThrottleReasonSyncBoost).at(0), "sync boost");
  EXPECT_EQ(clock_limit_names(nvmlClocksThrottleReasonDisplayClockSetting).at(0), "display clocks");
}

}  // namespace
}  // namespace sinter
