#include "device/known_devices.h"

namespace sinter {

std::span<const KnownDevice> known_devices() {
  static constexpr KnownDevice kDevices[] = {
      {"rtx-pro-6000", "NVIDIA RTX PRO 6000 Blackwell", 1792, 96, 504, 1007, 2015, "sm_120a"},
      {"rtx-5090", "NVIDIA GeForce RTX 5090", 1792, 32, 210, 419, 1676, "sm_120a"},
      {"dgx-spark", "NVIDIA DGX Spark (GB10)", 273, 128, 125, 250, 500, "sm_121a"},
      {"h100", "NVIDIA H100 SXM", 3350, 80, 989, 1979, 0, "sm_90a"},
      {"h200", "NVIDIA H200 SXM", 4800, 141, 989, 1979, 0, "sm_90a"},
      {"b200", "NVIDIA B200", 8000, 180, 2250, 4500, 9000, "sm_100a"},
      {"b300", "NVIDIA B300", 8000, 288, 2250, 4500, 13500, "sm_103a"},
  };
  return kDevices;
}

const KnownDevice* find_known_device(std::string_view name) {
  for (const KnownDevice& device : known_devices())
    if (device.name == name) return &device;
  return nullptr;
}

}  // namespace sinter
