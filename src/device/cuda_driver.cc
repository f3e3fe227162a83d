#include "device/cuda_driver.h"

#include <type_traits>

#include "base/error.h"
#include "device/shared_library.h"

namespace sinter {
namespace {

using namespace cuda_abi;

using GetProcAddress = CUresult (*)(const char* symbol, void** function, int version, uint64_t flags,
                                    int* status);

CudaDriverSearch unavailable(std::string reason) { return {std::nullopt, std::move(reason), false}; }

// The name of a function that is missing; nullptr when all were found.
const char* resolve(GetProcAddress get, CudaDriver& driver) {
  const auto find = [get](const char* name, int version, auto& function) {
    void* address = nullptr;
    if (get(name, &address, version, kLegacyStreamSymbols, nullptr) != kSuccess) return false;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
    return address != nullptr;
  };
#define SINTER_CUDA_RESOLVE(name, version, parameters) \
  if (!find(#name, version, driver.name)) return #name;
  SINTER_CUDA_FUNCTIONS(SINTER_CUDA_RESOLVE)
#undef SINTER_CUDA_RESOLVE
  return nullptr;
}

struct Meaning {
  ErrorKind kind;
  const char* mend;
};

Meaning meaning(CUresult result) {
  switch (result) {
    case kOutOfMemory: return {ErrorKind::kMemory, "free memory on the GPU, or ask for less of it"};
    case kNoDevice: return {ErrorKind::kUnsupported, "check nvidia-smi and CUDA_VISIBLE_DEVICES"};
    case kInvalidImage:
    case kNoBinaryForGpu:
    case kInvalidPtx:
    case kUnsupportedPtxVersion:
      return {ErrorKind::kUnsupported, "the code was compiled for another GPU or a newer driver"};
    case kSystemDriverMismatch:
      return {ErrorKind::kUnsupported, "the kernel module and libcuda differ: reboot after a driver update"};
    case kNotSupported: return {ErrorKind::kUnsupported, ""};
    case kEccUncorrectable: return {ErrorKind::kInternal, "the GPU's memory is damaged: reset it"};
    case kIllegalAddress:
    case kAssert:
    case kHardwareStackError:
    case kIllegalInstruction:
    case kMisalignedAddress:
    case kInvalidAddressSpace:
    case kInvalidPc:
    case kLaunchFailed:
      return {ErrorKind::kInternal,
              "a kernel failed, now or earlier, and this process can no longer use the GPU: a bug in sinter, "
              "please report it"};
    default: return {ErrorKind::kInternal, ""};
  }
}

}  // namespace

std::string CudaDriver::text(CUresult result) const {
  const char* name = nullptr;
  const char* description = nullptr;
  if (cuGetErrorName(result, &name) != kSuccess || name == nullptr) name = "unknown CUDA error";
  if (cuGetErrorString(result, &description) != kSuccess || description == nullptr) description = "";
  return fmt::format("{} ({}){}{}", name, result, *description == '\0' ? "" : ": ", description);
}

void CudaDriver::raise(CUresult result, const char* call, std::string_view where) const {
  const auto [kind, mend] = meaning(result);
  throw Error(kind, {.where = fmt::format("{}{}{}", where, where.empty() ? "" : ": ", call),
                     .expected = {},
                     .found = text(result),
                     .mend = mend});
}

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

CudaDriverSearch open_cuda_driver(const std::string& name) {
  const SharedLibrary library(name);
  if (library.is_missing()) {
    CudaDriverSearch search = unavailable(name + " not found: no NVIDIA driver is installed");
    search.is_missing = true;
    return search;
  }
  if (!library.is_open()) return unavailable(fmt::format("{} cannot be loaded: {}", name, library.reason()));

  // This one never changed its interface, and an old driver has no cuGetProcAddress_v2 to be asked with.
  CudaDriver driver;
  const auto get_version = reinterpret_cast<cuDriverGetVersion_fn>(library.find("cuDriverGetVersion"));
  if (get_version == nullptr || get_version(&driver.version) != kSuccess)
    return unavailable(name + " is no CUDA driver: it does not tell its version");
  const auto get = reinterpret_cast<GetProcAddress>(library.find("cuGetProcAddress_v2"));
  if (driver.version < kMinCudaVersion || get == nullptr)
    return unavailable(
        fmt::format("the NVIDIA driver is for CUDA {}, sinter needs {}: install driver {} or newer",
                    cuda_version_text(driver.version), cuda_version_text(kMinCudaVersion), kMinDriver));
  if (const char* missing = resolve(get, driver); missing != nullptr)
    return unavailable(fmt::format("the NVIDIA driver has no {}, though CUDA {} has", missing,
                                   cuda_version_text(driver.version)));
  const CUresult result = driver.cuInit(0);
  if (result == kNoDevice)
    return unavailable("the NVIDIA driver sees no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES");
  if (result != kSuccess)
    return unavailable(fmt::format("the NVIDIA driver does not start: {}", driver.text(result)));
  return {driver, {}, false};
}

const CudaDriverSearch& find_cuda_driver() {
  static const CudaDriverSearch search = open_cuda_driver("libcuda.so.1");
  return search;
}

const CudaDriver& cuda_driver() {
  const CudaDriverSearch& search = find_cuda_driver();
  if (!search.driver)
    throw Error(ErrorKind::kUnsupported,
                {.where = "GPU", .expected = {}, .found = search.reason, .mend = "the CPU works without it"});
  return *search.driver;
}

}  // namespace sinter
