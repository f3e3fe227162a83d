#include "jit/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "device/shared_library.h"
#include "jit/nvrtc_abi.h"

namespace sinter::jit {
namespace fs = std::filesystem;
namespace {

// Newest first: an older one knows fewer architectures.
constexpr const char* kLibraryNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
// Of the wheels nvidia-cuda-nvrtc (13) and nvidia-cuda-nvrtc-cu12.
constexpr const char* kWheelFolders[] = {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"};

// Entries of a folder that may be missing, sorted.
std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    found.push_back(it->path());
  std::ranges::sort(found);
  return found;
}

// NVRTC asks the loader for this part by its bare name and has no run path: outside the loader's path it is
// found only if it is loaded already.
void load_builtins(const fs::path& folder) {
  for (const fs::path& path : entries(folder))
    if (path.filename().string().starts_with("libnvrtc-builtins.so")) SharedLibrary{path.string()};
}

std::vector<fs::path> libraries_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const char* name : kLibraryNames)
    if (fs::exists(folder / name, error)) found.push_back(folder / name);
  return found;
}

std::vector<fs::path> wheel_libraries(const NvrtcPlaces& places) {
  std::vector<fs::path> found;
  for (const fs::path& prefix : places.python_prefixes)
    for (const fs::path& python : entries(prefix / "lib")) {
      if (!python.filename().string().starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"})
        for (const char* wheel : kWheelFolders)
          for (fs::path& path : libraries_in(python / packages / wheel)) found.push_back(std::move(path));
    }
  return found;
}

// Text that NVRTC hands out as a size, which counts a final NUL if there is one, and a copy.
template <typename Bytes>
Bytes read_out(NvrtcProgram program, int (*size)(NvrtcProgram, size_t*), int (*copy)(NvrtcProgram, char*)) {
  size_t num_bytes = 0;
  if (size(program, &num_bytes) != kNvrtcSuccess || num_bytes == 0) return {};
  Bytes bytes(num_bytes, {});
  if (copy(program, reinterpret_cast<char*>(bytes.data())) != kNvrtcSuccess) return {};
  return bytes;
}

}  // namespace

std::unique_ptr<const Nvrtc> Nvrtc::load(const fs::path& path, std::string& reason) {
  if (path.has_parent_path()) load_builtins(path.parent_path());
  const SharedLibrary library(path.string());
  if (!library.is_open()) {
    reason = library.is_missing() ? "" : library.reason();
    return nullptr;
  }
  NvrtcFunctions functions;
  std::string missing;
  const auto resolve = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.find(name));
    if (function == nullptr) missing = name;
  };
  resolve(functions.error_string, "nvrtcGetErrorString");
  resolve(functions.version, "nvrtcVersion");
  resolve(functions.create_program, "nvrtcCreateProgram");
  resolve(functions.destroy_program, "nvrtcDestroyProgram");
  resolve(functions.compile_program, "nvrtcCompileProgram");
  resolve(functions.log_size, "nvrtcGetProgramLogSize");
  resolve(functions.log, "nvrtcGetProgramLog");
  resolve(functions.cubin_size, "nvrtcGetCUBINSize");
  resolve(functions.cubin, "nvrtcGetCUBIN");
  std::unique_ptr<Nvrtc> nvrtc(new Nvrtc);
  if (!missing.empty() || functions.version(&nvrtc->major_, &nvrtc->minor_) != kNvrtcSuccess) {
    reason = fmt::format("{} is no NVRTC of CUDA 12 or 13: it has no {}", path.string(),
                         missing.empty() ? "version" : missing);
    return nullptr;
  }
  Dl_info info;
  const bool located = ::dladdr(reinterpret_cast<void*>(functions.version), &info) != 0;
  nvrtc->path_ = located && info.dli_fname != nullptr ? fs::path(info.dli_fname) : path;
  nvrtc->functions_ = std::make_shared<const NvrtcFunctions>(functions);
  return nvrtc;
}

std::string Nvrtc::version() const { return fmt::format("{}.{}", major_, minor_); }

Nvrtc::Output Nvrtc::compile(std::span<const SourceFile> files, std::span<const std::string> options) const {
  std::vector<std::string> texts, names;  // NVRTC wants them to end in NUL
  for (const SourceFile& file : files) {
    texts.emplace_back(file.text);
    names.emplace_back(file.path);
  }
  const auto pointers = [](std::span<const std::string> strings) {
    std::vector<const char*> all;
    for (const std::string& text : strings) all.push_back(text.c_str());
    return all;
  };
  const auto text_pointers = pointers(texts), name_pointers = pointers(names),
             options_pointers = pointers(options);

  NvrtcProgram program = nullptr;
  int result = functions_->create_program(&program, text_pointers[0], name_pointers[0],
                                          static_cast<int>(files.size()) - 1, text_pointers.data() + 1,
                                          name_pointers.data() + 1);
  if (result != kNvrtcSuccess) return {Output::Status::kFailed, functions_->error_string(result), {}};
  const auto destroy = [this](NvrtcProgram p) { functions_->destroy_program(&p); };
  const std::unique_ptr<OpaqueNvrtcProgram, decltype(destroy)> owner(program, destroy);

  result = functions_->compile_program(program, static_cast<int>(options_pointers.size()),
                                       options_pointers.data());
  using Status = Output::Status;
  Output output{Status::kFailed, read_out<std::string>(program, functions_->log_size, functions_->log), {}};
  while (output.log.ends_with('\0')) output.log.pop_back();
  if (result == kNvrtcInvalidOption) output.status = Status::kBadOption;
  if (result == kNvrtcCompilation) output.status = Status::kBadSource;
  if (result == kNvrtcSuccess) {
    output.cubin = read_out<std::vector<std::byte>>(program, functions_->cubin_size, functions_->cubin);
    if (!output.cubin.empty()) output.status = Status::kOk;
  }
  if (output.status == Status::kFailed)
    output.log = fmt::format("{} {}", result == kNvrtcSuccess ? "no cubin" : functions_->error_string(result),
                             output.log);
  return output;
}

NvrtcFound open_nvrtc(const NvrtcPlaces& places) {
  std::string reasons;
  const auto try_all = [&](const std::vector<fs::path>& libraries) -> std::unique_ptr<const Nvrtc> {
    for (const fs::path& library : libraries) {
      std::string reason;
      if (auto nvrtc = Nvrtc::load(library, reason)) return nvrtc;
      if (!reason.empty()) reasons += "; " + reason;
    }
    return nullptr;
  };

  if (!places.named.empty()) {
    std::error_code error;
    const bool is_folder = fs::is_directory(places.named, error);
    if (auto nvrtc = try_all(is_folder ? libraries_in(places.named) : std::vector{places.named}))
      return {std::move(nvrtc), {}, {}};
    return {nullptr, fmt::format("SINTER_NVRTC is {}: no NVRTC there{}", places.named.string(), reasons),
            "let it name the libnvrtc.so of CUDA 12 or 13 or its folder, or unset it"};
  }
  if (places.loader_path)
    if (auto nvrtc = try_all({std::begin(kLibraryNames), std::end(kLibraryNames)}))
      return {std::move(nvrtc), {}, {}};
  if (auto nvrtc = try_all(wheel_libraries(places))) return {std::move(nvrtc), {}, {}};
  return {nullptr, "NVRTC is neither on the loader's path nor in a Python" + reasons,
          "pip install 'nvidia-cuda-nvrtc==13.0.*', or let SINTER_NVRTC name a libnvrtc.so of CUDA 12 or 13"};
}

}  // namespace sinter::jit
