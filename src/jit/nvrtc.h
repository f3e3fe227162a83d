// NVRTC, the compiler for device code, opened by name at run time with signatures declared here. A machine
// without it runs the same binary and learns why device code cannot be compiled.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jit/sources.h"

namespace sinter::jit {

// Where NVRTC is looked for, in this order: `named`, the loader's path, wheels below `python_prefixes`.
struct NvrtcPlaces {
  // The library or its folder. When set nothing else is tried: what a person names is used or refused.
  std::filesystem::path named;
  // Of Python installations: <prefix>/lib/python3*/{site,dist}-packages may hold the wheel.
  std::vector<std::filesystem::path> python_prefixes;
  bool loader_path = true;
};

struct NvrtcFound;
struct NvrtcFunctions;

// A loaded NVRTC. It stays loaded until the process ends. All functions may be called by many threads at
// once.
class Nvrtc {
 public:
  struct Output {
    enum class Status { kOk, kBadSource, kBadOption, kFailed };
    Status status;
    std::string log;  // the compiler's text; for kFailed after the name of NVRTC's error
    std::vector<std::byte> cubin;
  };

  // `files`: the program and then the headers that it may include, by path. Never throws for bad source.
  Output compile(std::span<const SourceFile> files, std::span<const std::string> options) const;

  int major() const { return major_; }
  int minor() const { return minor_; }
  std::string version() const;                                 // "13.0"
  const std::filesystem::path& path() const { return path_; }  // of the library

 private:
  friend NvrtcFound open_nvrtc(const NvrtcPlaces& places);
  Nvrtc() = default;
  // `library`: a path, or a bare name for the loader to find. nullptr: see `reason`, empty when there is no
  // such file.
  static std::unique_ptr<const Nvrtc> load(const std::filesystem::path& library, std::string& reason);

  std::shared_ptr<const NvrtcFunctions> functions_;
  std::filesystem::path path_;
  int major_ = 0, minor_ = 0;
};

struct NvrtcFound {
  std::unique_ptr<const Nvrtc> nvrtc;  // or nullptr, and then:
  std::string reason;                  // what was tried and what came of it
  std::string mend;
};

NvrtcFound open_nvrtc(const NvrtcPlaces& places);

}  // namespace sinter::jit
