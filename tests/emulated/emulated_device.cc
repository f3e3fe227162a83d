// A CPU that has every instruction the kernels know: takes the place of the library's own answer.
#include "device/device_info.h"

namespace sinter {

const DeviceInfo& host_device() {
  static const DeviceInfo device = {
      .name = "emulated",
      .cpu = {.avx2 = true,
              .avx512 = true,
              .avx512_vbmi = true,
              .avx512_bf16 = true,
              .avx512_vnni = true,
              .slow_dpbf16 = true},
      .num_cores = 2,
      .memory_bytes = uint64_t{8} << 30,
      .l2_bytes = 1 << 20,
      .l3_bytes = 32 << 20,
  };
  return device;
}

}  // namespace sinter
