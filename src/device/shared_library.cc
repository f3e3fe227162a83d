#include "device/shared_library.h"

#include <dlfcn.h>

namespace sinter {

SharedLibrary::SharedLibrary(const std::string& name)
    : handle_(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ != nullptr) return;
  const char* text = ::dlerror();
  reason_ = text == nullptr ? "unknown error" : text;
  // The loader words a missing file of this name and a missing one that it depends on alike, but for the
  // name.
  missing_ = reason_.starts_with(name + ":") && reason_.find("No such file") != std::string::npos;
}

void* SharedLibrary::find(const char* symbol) const {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, symbol);
}

}  // namespace sinter
