// Data-sheet figures of devices that a roofline can be drawn for, present or not.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace sinter {

// Matrix rates are dense, with float32 accumulation, in 1e12 operations per second (a multiply-add counts
// two). 0: the device has no such units and works at the rate of the next wider type.
struct KnownDevice {
  std::string_view name;       // "rtx-pro-6000", as in --device
  std::string_view full_name;  // "NVIDIA RTX PRO 6000 Blackwell"
  double read_gb_per_s;        // 1e9 bytes per second
  double memory_gb;            // as sold, 1e9 bytes
  double bf16_tflops, fp8_tflops, fp4_tflops;
  std::string_view arch = {};  // in the table of architectures

  double memory_bytes() const { return memory_gb * 1e9; }
};

std::span<const KnownDevice> known_devices();
const KnownDevice* find_known_device(std::string_view name);  // nullptr when unknown

}  // namespace sinter
