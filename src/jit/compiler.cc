#include "jit/compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <unordered_map>

#include "base/log.h"
#include "base/thread_pool.h"
#include "device/device_info.h"
#include "jit/diagnostics.h"
#include "jit/sha256.h"

namespace sinter::jit {
namespace {

// NVRTC took 0.12 GB for a matrix kernel with its main loop unrolled and 0.57 GB for 3,000 unrolled
// statements (NVRTC 13.0).
constexpr uint64_t kCompileBytes = uint64_t{1} << 30;

// Headers that host code includes too have functions without __device__. nvcc knows this for constexpr ones.
constexpr std::string_view kDefaultDevice = "--device-as-default-execution-space";
constexpr std::string_view kNvccDefaultDevice = "--expt-relaxed-constexpr";

std::string key_of(std::span<const std::string> options, std::span<const SourceFile> files) {
  Sha256 hash;
  for (const std::string& option : options) hash.update_sized(option);
  for (const SourceFile& file : files) {
    hash.update_sized(file.path);
    hash.update_sized(file.text);
  }
  return hash.hex().substr(0, 32);
}

std::string shell_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) c == '\'' ? quoted += "'\\''" : quoted += c;
  return quoted + "'";
}

// A command that gives the same cubin where there is a toolkit of the same version: NVRTC's options are
// nvcc's.
std::string command_text(const Request& request, const Nvrtc& nvrtc, std::span<const std::string> options) {
  std::string text = fmt::format(
      "# NVRTC {} compiled source.cu, which is src/kernels/{}, with these options.\n"
      "# With a toolkit the same is, in this folder:\nnvcc --cubin -I. -o again.cubin",
      nvrtc.version(), request.path);
  for (const std::string& option : options)
    text += " \\\n  " + shell_quoted(option == kDefaultDevice ? kNvccDefaultDevice : option);
  return text + " \\\n  source.cu\n";
}

Error missing_nvrtc(const Request& request, const NvrtcFound& found, const Cache& cache) {
  const std::string where =
      cache.root().empty() ? "" : fmt::format(", and {} has no cubin", cache.root().string());
  return Error(ErrorKind::kUnsupported,
               {.where = fmt::format("{} for {}", name_of(request), request.arch->name),
                .expected = "NVRTC to compile it",
                .found = found.reason + where,
                .mend = found.mend});
}

Error failed_compile(const Request& request, const Nvrtc& nvrtc, const Nvrtc::Output& output) {
  const std::string compiler = fmt::format("NVRTC {} for {}", nvrtc.version(), request.arch->name);
  if (output.status == Nvrtc::Output::Status::kBadSource) {
    log(LogLevel::kDebug, output.log);
    Diagnostics errors = parse_errors(output.log, request.path);
    return Error(ErrorKind::kInternal, {.where = std::move(errors.where),
                                        .expected = {},
                                        .found = std::move(errors.text),
                                        .mend = compiler + "; this is a bug in sinter, please report it"});
  }
  const bool is_option = output.status == Nvrtc::Output::Status::kBadOption;
  return Error(ErrorKind::kUnsupported,
               {.where = fmt::format("{}: {}", compiler, request.path),
                .expected = is_option ? "a compiler that knows the target and the options" : "a cubin",
                .found = parse_errors(output.log, request.path).text,
                .mend = fmt::format("{} is version {}; 13.0 knows all targets", nvrtc.path().string(),
                                    nvrtc.version())});
}

}  // namespace

std::vector<std::string> options_of(const Request& request) {
  std::vector<std::string> options{fmt::format("--gpu-architecture={}", request.arch->name), "--std=c++17",
                                   "--generate-line-info", "--ptxas-options=-v", std::string(kDefaultDevice)};
  for (const ArchFeature& feature : arch_features())
    options.push_back(fmt::format("-DSINTER_HAS_{}={}", feature.name, request.arch->*feature.has ? 1 : 0));
  for (const Define& define : request.defines)
    options.push_back(fmt::format("-D{}={}", define.name, define.value));
  options.insert(options.end(), request.options.begin(), request.options.end());
  return options;
}

std::string name_of(const Request& request) {
  std::string name = request.path.substr(0, request.path.rfind(".cu"));
  std::ranges::replace(name, '/', '.');
  return name;
}

std::string key_of(const Request& request) {
  return key_of(options_of(request), with_includes(request.sources, request.path));
}

Compiler::Compiler(Settings settings) : settings_(std::move(settings)), cache_(settings_.cache_folder) {
  if (settings_.cache_folder.empty())
    log_once(
        LogLevel::kWarning,
        "no folder for the kernel cache, kernels are compiled at every start (set SINTER_CACHE or HOME)");
}

const NvrtcFound& Compiler::nvrtc() const {
  std::call_once(searched_, [this] { found_ = open_nvrtc(settings_.nvrtc); });
  return found_;
}

Compiled Compiler::compile(const Request& request) const {
  SINTER_CHECK(request.arch != nullptr, "no architecture for {}", request.path);
  const std::vector<SourceFile> files = with_includes(request.sources, request.path);
  const std::vector<std::string> options = options_of(request);
  const std::string name = name_of(request), key = key_of(options, files);
  const Cache::Id id{request.arch->name, name, key};

  const Nvrtc* compiler = nvrtc().nvrtc.get();
  const std::string version = compiler == nullptr ? "" : compiler->version();
  if (std::optional<Compiled> cached = cache_.find(version, id)) return *std::move(cached);
  if (compiler == nullptr) throw missing_nvrtc(request, nvrtc(), cache_);

  Nvrtc::Output output = compiler->compile(files, options);
  if (output.status != Nvrtc::Output::Status::kOk) throw failed_compile(request, *compiler, output);
  Compiled compiled{.name = name,
                    .key = key,
                    .cubin = std::move(output.cubin),
                    .log = std::move(output.log),
                    .kernels = {},
                    .from_cache = false};
  compiled.kernels = parse_resources(compiled.log);
  if (compiled.kernels.empty())
    log_once(LogLevel::kWarning, fmt::format("{}: NVRTC {} reports no registers and spills", name, version));
  cache_.store(version, id, compiled, files, command_text(request, *compiler, options));
  return compiled;
}

int num_compile_threads(size_t num_requests, const CompileLimits& limits) {
  const uint64_t memory_bytes =
      limits.memory_bytes != 0 ? limits.memory_bytes : host_device().memory_bytes / 2;
  const uint64_t num_cores = limits.num_threads > 0 ? limits.num_threads : num_allowed_cores();
  return static_cast<int>(std::max<uint64_t>(
      1, std::min({static_cast<uint64_t>(num_requests), num_cores, memory_bytes / kCompileBytes})));
}

std::vector<Outcome> Compiler::compile_all(std::span<const Request> requests, const CompileLimits& limits,
                                           const std::function<void(const Progress&)>& progress) const {
  std::vector<Outcome> outcomes(requests.size());
  const auto try_request = [&](size_t i, auto&& action) {
    try {
      action(requests[i]);
    } catch (const Error& error) {
      outcomes[i].error = error;
    }
  };

  // The first request of each key does the work.
  std::vector<size_t> first(requests.size());
  std::vector<size_t> distinct;
  std::unordered_map<std::string, size_t> first_of_key;
  for (size_t i = 0; i < requests.size(); ++i) {
    first[i] = i;
    try_request(i, [&](const Request& r) {
      first[i] = first_of_key.try_emplace(name_of(r) + key_of(r), i).first->second;
    });
    if (first[i] == i) distinct.push_back(i);
  }

  std::atomic<size_t> next{0};
  size_t num_done = 0;
  std::exception_ptr failure;
  std::mutex mutex;  // num_done, failure, and the calls of `progress`
  const auto work = [&] {
    for (size_t k = next++; k < distinct.size(); k = next++) {
      Outcome& outcome = outcomes[distinct[k]];
      try {
        if (!outcome.error)
          try_request(distinct[k], [&](const Request& r) { outcome.compiled = compile(r); });
        const std::lock_guard lock(mutex);
        ++num_done;
        if (progress && !failure)
          progress({num_done, distinct.size(), name_of(requests[distinct[k]]), outcome});
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = distinct.size();
      }
    }
  };
  std::vector<std::jthread> threads;
  try {
    for (int i = 1; i < num_compile_threads(distinct.size(), limits); ++i) threads.emplace_back(work);
  } catch (const std::system_error&) {
    // The system gives no more threads: those that there are do the work.
  }
  work();
  threads.clear();
  if (failure) std::rethrow_exception(failure);
  for (size_t i = 0; i < requests.size(); ++i)
    if (first[i] != i) outcomes[i] = outcomes[first[i]];
  return outcomes;
}

}  // namespace sinter::jit
