// Libraries that are opened by name at run time, so that no toolkit is needed to build and no driver to
// start.
#pragma once

#include <string>

namespace sinter {

class SharedLibrary {
 public:
  // A name as the loader searches it ("libcuda.so.1"), or a path. Stays open until the process ends: drivers
  // leave threads behind that would outlive their code.
  explicit SharedLibrary(const std::string& name);

  bool is_open() const { return handle_ != nullptr; }
  bool is_missing() const { return missing_; }           // not open because no such file was found
  const std::string& reason() const { return reason_; }  // why not open, in the loader's words
  void* find(const char* symbol) const;                  // nullptr when absent

 private:
  void* handle_ = nullptr;
  bool missing_ = false;
  std::string reason_;
};

}  // namespace sinter
