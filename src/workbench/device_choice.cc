#include "workbench/device_choice.h"

#include <charconv>

#include "base/error.h"
#include "base/log.h"
#include "device/known_devices.h"
#include "jit/compiler.h"

namespace sinter::workbench {
namespace {

[[noreturn]] void fail_device(std::string_view text, std::string expected) {
  throw Error(ErrorKind::kUsage, {.where = "--device",
                                  .expected = std::move(expected),
                                  .found = fmt::format("'{}'", text),
                                  .mend = "`sinter doctor` lists the GPUs of this machine"});
}

std::string target_names() {
  std::string names;
  for (const Arch& arch : archs()) names += fmt::format("{}{}", names.empty() ? "" : ", ", arch.name);
  for (const KnownDevice& device : known_devices()) names += fmt::format(", {}", device.name);
  return names;
}

const Arch* find_target_or_null(std::string_view text) {
  if (const KnownDevice* known = find_known_device(text)) return find_arch(known->arch);
  return find_arch(text);
}

bool is_choice(std::string_view text) {
  return text == "auto" || text == "cpu" || text == "gpu" || text.starts_with("gpu:");
}

}  // namespace

DeviceChoice parse_device(std::string_view text) {
  using Kind = DeviceChoice::Kind;
  if (text == "auto") return {Kind::kAuto};
  if (text == "cpu") return {Kind::kCpu};
  if (text == "gpu") return {Kind::kGpu};
  int gpu_idx = -1;
  if (text.starts_with("gpu:")) {
    const auto [end, error] = std::from_chars(text.data() + 4, text.data() + text.size(), gpu_idx);
    if (error == std::errc() && end == text.data() + text.size() && gpu_idx >= 0)
      return {Kind::kGpu, gpu_idx};
  }
  fail_device(text, "auto, cpu, gpu or gpu:N");
}

std::optional<GpuDevice> open_device(const DeviceChoice& choice) {
  using Kind = DeviceChoice::Kind;
  if (choice.kind == Kind::kCpu) return std::nullopt;
  if (choice.kind == Kind::kGpu) return GpuDevice::open(choice.gpu_idx);
  const GpuList list = list_gpus();
  if (list.gpus.empty()) {
    // A machine without a driver is an ordinary one, and `sinter doctor` says so.
    log_once(find_cuda_driver().is_missing ? LogLevel::kDebug : LogLevel::kWarning,
             fmt::format("no GPU is used: {}", list.reason));
    return std::nullopt;
  }
  if (const std::string reason = list.gpus.front().unsupported_reason(); !reason.empty()) {
    log_once(LogLevel::kWarning, fmt::format("the GPU ({}) is not used: {}", list.gpus.front().name, reason));
    return std::nullopt;
  }
  const jit::NvrtcFound nvrtc = jit::open_nvrtc(jit::settings_from_environment().nvrtc);
  if (!nvrtc.nvrtc) {
    log_once(
        LogLevel::kWarning,
        fmt::format("the GPU ({}) is not used, its code cannot be compiled: {} ({}; --device gpu uses what "
                    "`sinter compile` left)",
                    list.gpus.front().name, nvrtc.reason, nvrtc.mend));
    return std::nullopt;
  }
  try {
    return GpuDevice::open(list.gpus.front().device_idx);
  } catch (const Error& error) {  // in use by somebody alone, or broken
    log_once(LogLevel::kWarning, fmt::format("the GPU is not used: {}", error.what()));
    return std::nullopt;
  }
}

DeviceInfo find_device_info(std::string_view text) {
  if (const Arch* arch = find_target_or_null(text)) {
    DeviceInfo device = device_info(*arch);
    if (const KnownDevice* known = find_known_device(text)) {
      device.name = device.gpu->name = known->full_name;
      device.memory_bytes = static_cast<uint64_t>(known->memory_bytes());
      device.gpu->memory_bytes = static_cast<int64_t>(device.memory_bytes);
    }
    return device;
  }
  if (!is_choice(text)) fail_device(text, "auto, cpu, gpu, gpu:N, " + target_names());
  const DeviceChoice choice = parse_device(text);
  if (choice.kind == DeviceChoice::Kind::kCpu) return host_device();
  const GpuList list = list_gpus();
  if (choice.kind == DeviceChoice::Kind::kAuto)
    return list.gpus.empty() || list.gpus.front().arch == nullptr ? host_device()
                                                                  : device_info(list.gpus.front());
  if (static_cast<size_t>(choice.gpu_idx) >= list.gpus.size())
    throw Error(ErrorKind::kUnsupported,
                {.where = fmt::format("GPU {}", choice.gpu_idx),
                 .expected = list.gpus.empty() ? "" : fmt::format("0 to {}", list.gpus.size() - 1),
                 .found = list.gpus.empty() ? list.reason : fmt::format("{}", choice.gpu_idx),
                 .mend = "an architecture such as sm_90a can be asked about anywhere"});
  return device_info(list.gpus[static_cast<size_t>(choice.gpu_idx)]);
}

const Arch& find_target(std::string_view text) {
  if (const Arch* arch = find_target_or_null(text)) return *arch;
  throw Error(
      ErrorKind::kUsage,
      {.where = "--arch", .expected = target_names(), .found = fmt::format("'{}'", text), .mend = ""});
}

}  // namespace sinter::workbench
