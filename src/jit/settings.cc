#include "jit/settings.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <system_error>

namespace sinter::jit {
namespace fs = std::filesystem;
namespace {

fs::path variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// <prefix>/bin of each Python on PATH gives its prefix.
void add_pythons_on_path(std::vector<fs::path>& prefixes) {
  const std::string path = variable("PATH").string();
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const fs::path folder = path.substr(begin, end - begin);
    std::error_code error;
    if (folder.is_absolute() && fs::exists(folder / "python3", error))
      prefixes.push_back(folder.parent_path());
    begin = end + 1;
  }
}

fs::path cache_folder(const fs::path& home) {
  if (const fs::path named = variable("SINTER_CACHE"); !named.empty()) return fs::absolute(named);
  // A relative one is to be ignored, says the XDG specification.
  if (const fs::path xdg = variable("XDG_CACHE_HOME"); xdg.is_absolute()) return xdg / "sinter";
  return home.is_absolute() ? home / ".cache" / "sinter" : fs::path();
}

}  // namespace

Settings settings_from_environment() {
  Settings settings;
  settings.nvrtc.named = variable("SINTER_NVRTC");
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (fs::path prefix = variable(name); !prefix.empty()) settings.nvrtc.python_prefixes.push_back(prefix);
  add_pythons_on_path(settings.nvrtc.python_prefixes);
  const fs::path home = variable("HOME");
  if (!home.empty()) settings.nvrtc.python_prefixes.push_back(home / ".local");
  settings.cache_folder = cache_folder(home);
  return settings;
}

}  // namespace sinter::jit
