// Environment variables that change what the program does. All of them are here,
// but for those that say where NVRTC and its cache are (jit/settings.h).
#pragma once

#include <string>

namespace sinter {

struct Environment {
  std::string cpu_isa;    // SINTER_CPU_ISA: scalar, avx2 or avx512: use no more than that
  std::string models;     // SINTER_MODELS: a folder of shipped models
  bool no_color = false;  // NO_COLOR is set and not empty
};

// Read once, when first asked for.
const Environment& environment();

}  // namespace sinter
