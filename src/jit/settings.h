// Where the compiler and its cache are on this machine.
#pragma once

#include <filesystem>

#include "jit/nvrtc.h"

namespace sinter::jit {

struct Settings {
  NvrtcPlaces nvrtc;
  // Holds nvrtc-<version>/<arch>/<name>-<key>/. Empty: nothing is kept.
  std::filesystem::path cache_folder;
};

// From SINTER_NVRTC and SINTER_CACHE. Without the latter the cache is XDG_CACHE_HOME/sinter or
// ~/.cache/sinter; Pythons are those of VIRTUAL_ENV, CONDA_PREFIX, the folders of PATH, and the user's own
// packages.
Settings settings_from_environment();

}  // namespace sinter::jit
