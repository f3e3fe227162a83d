#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "device/gpu_memory.h"
#include "dispatch/dispatch.h"
#include "dispatch/gpu_runtime.h"

namespace sinter::dispatch {
namespace {

using kernels::KernelInfo;
using kernels::Support;
using ops::WeightLayout;

// Problems of one op that are remembered: far more than a model has at once, so that only prompt lengths
// long past are forgotten.
constexpr size_t kMaxChoices = 256;

// Tensors of a layer that are no matrices are kilobytes; the driver gives memory by the megabyte.
constexpr size_t kUploadBlockBytes = size_t{4} << 20;
constexpr size_t kGpuAlignment = 256;
// Of a GPU: activations, workspace, device code, graphs.
constexpr uint64_t kGpuWorkBytes = uint64_t{512} << 20;

bool is_packed(WeightLayout layout) {
  return layout != WeightLayout::kNone && layout != WeightLayout::kInPlace;
}

WeightLayout layout_of(const ops::Args& args) {
  const ops::PackedWeights* weights = nullptr;
  if (const auto* linear = std::get_if<ops::LinearArgs>(&args)) weights = linear->weight;
  if (const auto* moe = std::get_if<ops::MoeFfnArgs>(&args)) weights = moe->experts;
  return weights == nullptr ? WeightLayout::kNone : weights->layout;
}

uint64_t stored_bytes(const ops::Weights& weights) {
  const auto of_one = [](const ops::Weight& weight) {
    return static_cast<uint64_t>(ops::stored_bytes(weight.format, weight.N, weight.K));
  };
  if (const auto* weight = std::get_if<ops::Weight>(&weights)) return of_one(*weight);
  const auto& experts = std::get<ops::MoeWeights>(weights);
  uint64_t sum = 0;
  for (const auto* matrices : {&experts.gate, &experts.up, &experts.down})
    for (const ops::Weight& weight : *matrices) sum += of_one(weight);
  return sum;
}

double gb(uint64_t size_bytes) { return static_cast<double>(size_bytes) / 1e9; }

// By its own name or that of its backend.
bool is_named(const KernelInfo& kernel, std::string_view forced) {
  return kernel.name == forced || kernel.name.substr(0, kernel.name.find('.')) == forced;
}

// Whether the context may take a row at all, before any question about the problem.
Support is_admitted(const KernelInfo& kernel, const Options& options, bool packing_allowed) {
  if (const auto it = options.forced.find(kernel.op);
      it != options.forced.end() && !is_named(kernel, it->second))
    return Support::no(fmt::format("{} is forced", it->second));
  if (options.reference && !kernel.is_oracle) return Support::no("only plain float32 kernels are wanted");
  if (!packing_allowed && is_packed(kernel.layout))
    return Support::no(
        fmt::format("needs weights packed as {}, and they are used in place", name(kernel.layout)));
  return Support::yes();
}

[[noreturn]] void fail_choice(const ops::Problem& problem, const std::vector<Verdict>& verdicts,
                              const Options& options, const DeviceInfo& device) {
  const ops::Op op = op_of(problem);
  std::vector<std::string> reasons;
  reasons.reserve(verdicts.size());
  for (const Verdict& verdict : verdicts)
    reasons.push_back(fmt::format("{}: {}", verdict.kernel->name, verdict.reason));
  const auto forced = options.forced.find(op);
  throw Error(ErrorKind::kUnsupported,
              {.where = describe(problem),
               .expected = forced == options.forced.end()
                               ? fmt::format("a kernel for {}", name(op))
                               : fmt::format("the forced kernel {} to run", forced->second),
               .found = reasons.empty() ? "none" : fmt::format("{}", fmt::join(reasons, "; ")),
               .mend = forced != options.forced.end() ? "force another kernel, or none"
                       : device.gpu                   ? "--device cpu computes it"
                                                      : ""});
}

}  // namespace

Context::Context(const DeviceInfo& device, ThreadPool& pool, Options options)
    : device_(device),
      pool_(pool),
      options_(std::move(options)),
      packing_allowed_(options_.pack_weights && !options_.reference) {
  check_options();
}

Context::Context(const GpuDevice& gpu, ThreadPool& pool, Options options)
    : Context(device_info(gpu.info()), pool, std::move(options)) {
  gpu_ = std::make_unique<GpuRuntime>(gpu, pool);
  gpu_launch_.emplace(kernels::GpuLaunch{gpu_->stream, gpu_->programs, gpu_->uploader});
}

Context::~Context() = default;

void Context::check_options() const {
  if (device_.gpu && (options_.reference || !options_.pack_weights))
    throw Error(ErrorKind::kUsage,
                {.where = options_.reference ? "plain float32 kernels" : "unpacked weights",
                 .expected = "the CPU to compute on",
                 .found = device_.name,
                 .mend = "--device cpu"});
  for (const auto& [op, row_name] : options_.forced) {
    std::string problem = "no such kernel or backend";
    for (const KernelInfo* kernel : kernels::registry()) {
      if (!is_named(*kernel, row_name)) continue;
      if (kernel->op != op)
        problem = kernel->name == row_name ? fmt::format("a kernel for {}", name(kernel->op)) : problem;
      else if (options_.reference && !kernel->is_oracle)
        problem = "not a plain float32 kernel, which --reference demands";
      else if (!options_.pack_weights && is_packed(kernel->layout))
        problem = "a kernel that needs packed weights";
      else
        problem.clear();
      if (problem.empty()) break;
    }
    if (problem.empty()) continue;
    std::vector<std::string_view> known;
    for (const KernelInfo* row : kernels::registry())
      if (row->op == op) known.push_back(row->name);
    throw Error(ErrorKind::kUsage,
                {.where = fmt::format("forced kernel '{}'", row_name),
                 .expected = fmt::format("a kernel for {} ({})", name(op), fmt::join(known, ", ")),
                 .found = problem,
                 .mend = {}});
  }
}

std::vector<Verdict> Context::explain(const ops::Problem& problem, std::optional<WeightLayout> layout) const {
  std::vector<Verdict> verdicts;
  const KernelInfo* chosen = nullptr;
  for (const KernelInfo* kernel : kernels::registry()) {
    if (kernel->op != op_of(problem)) continue;
    Verdict verdict{kernel, false, {}};
    if (const Support support = kernels::supports(*kernel, problem, device_); !support) {
      verdict.reason = "cannot run: " + support.reason;
    } else if (const Support admitted = is_admitted(*kernel, options_, packing_allowed_); !admitted) {
      verdict.reason = "not chosen: " + admitted.reason;
    } else if (layout && *layout != kernel->layout) {
      verdict.reason =
          fmt::format("not chosen: reads weights as {}, these are {}", name(kernel->layout), name(*layout));
    } else if (chosen != nullptr) {
      verdict.reason = fmt::format("not chosen: {} comes first", chosen->name);
    } else {
      chosen = kernel;
      verdict.chosen = true;
      verdict.reason =
          options_.forced.contains(kernel->op) ? "chosen: forced" : "chosen: the first that can run";
    }
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

void Context::expect_weights(uint64_t size_bytes, uint64_t cache_bytes_per_token) {
  if (gpu_) return expect_gpu_weights(size_bytes, cache_bytes_per_token);
  if (!packing_allowed_) {
    placement_.reason =
        options_.reference ? "plain float32 kernels read them as stored" : "packing is switched off";
    return;
  }
  // Packing does not change sizes; a quarter more leaves room for the cache and for the weight being packed.
  const uint64_t needed_bytes = size_bytes + size_bytes / 4;
  const uint64_t available_bytes = available_memory_bytes();
  packing_allowed_ = available_bytes == 0 || needed_bytes <= available_bytes;
  placement_.reason =
      packing_allowed_
          ? fmt::format("a packed copy fits, with {:.2f} GB of {:.1f} GB available", gb(needed_bytes),
                        gb(available_bytes))
          : fmt::format(
                "a packed copy, which is faster, needs {:.1f} GB of memory and {:.1f} GB are available",
                gb(needed_bytes), gb(available_bytes));
}

void Context::expect_gpu_weights(uint64_t size_bytes, uint64_t cache_bytes_per_token) {
  const auto free_bytes = static_cast<uint64_t>(gpu_->device.memory_use().free_bytes);
  const auto num_tokens = static_cast<uint64_t>(std::max<int64_t>(1, options_.context));
  const int64_t longest = longest_gpu_context(free_bytes, size_bytes, cache_bytes_per_token);
  const uint64_t cache_bytes = num_tokens * cache_bytes_per_token;
  if (size_bytes + cache_bytes > free_bytes)
    throw Error(ErrorKind::kMemory,
                {.where = gpu_->device.label(),
                 .expected = fmt::format("{:.2f} GB for weights and {:.2f} GB for a context of {} tokens",
                                         gb(size_bytes), gb(cache_bytes), num_tokens),
                 .found = fmt::format("{:.2f} GB free", gb(free_bytes)),
                 .mend = longest > 0 ? fmt::format("--context {} fits", longest)
                                     : "--device cpu, a GPU with more memory, or a narrower format"});
  placement_.reason = fmt::format("{} has {:.1f} GB free: room for a context of {} tokens",
                                  gpu_->device.label(), gb(free_bytes), longest);
}

ops::PackedWeights Context::prepare(const ops::Problem& problem, ops::Weights weights) {
  for (const Verdict& verdict : explain(problem)) {
    if (!verdict.chosen) continue;
    const KernelInfo& kernel = *verdict.kernel;
    (is_packed(kernel.layout) ? placement_.packed_bytes : placement_.in_place_bytes) += stored_bytes(weights);
    ops::PackedWeights result{.source = std::move(weights), .layout = kernel.layout, .packed = {}};
    if (is_packed(kernel.layout)) {
      result.packed = allocate(kernel.packed_bytes(result.source));
      kernels::LaunchContext launch = launch_context();
      kernel.pack(launch, result.source, result.packed.bytes());
    }
    return result;
  }
  fail_choice(problem, explain(problem), options_, device_);
}

const Context::Choice& Context::choose(const ops::Problem& problem, WeightLayout layout) {
  std::list<Choice>& choices = choices_[static_cast<size_t>(op_of(problem))];
  for (auto it = choices.begin(); it != choices.end(); ++it) {
    if (it->layout != layout || it->problem != problem) continue;
    choices.splice(choices.begin(), choices, it);
    return choices.front();
  }
  const std::vector<Verdict> verdicts = explain(problem, layout);
  const KernelInfo* kernel = nullptr;
  for (const Verdict& verdict : verdicts)
    if (verdict.chosen) kernel = verdict.kernel;
  if (kernel == nullptr) fail_choice(problem, verdicts, options_, device_);
  kernels::Config config = kernels::default_config(*kernel, problem, device_);
  const size_t workspace_bytes = kernels::workspace_bytes(*kernel, problem, config);
  if (choices.size() == kMaxChoices) choices.pop_back();
  choices.push_front({problem, layout, kernel, std::move(config), workspace_bytes});
  return choices.front();
}

void Context::run(const ops::Problem& problem, const ops::Args& args) {
  check_args(problem, args);
  const Choice& choice = choose(problem, layout_of(args));
  if (choice.workspace_bytes > workspace_.size_bytes())
    replace_step_memory(workspace_, choice.workspace_bytes);
  kernels::LaunchContext launch = launch_context();
  choice.kernel->launch(launch, problem, args, choice.config);
}

kernels::LaunchContext Context::launch_context() {
  SINTER_CHECK(gpu_ != nullptr || !device_.gpu, "{} is described and not opened", device_.name);
  return {pool_, workspace_.bytes(), gpu_launch_ ? &*gpu_launch_ : nullptr};
}

Buffer Context::allocate(size_t size_bytes) const {
  return gpu_ ? device_buffer(gpu_->device, size_bytes) : Buffer::host(size_bytes);
}

void Context::replace_step_memory(Buffer& old, size_t size_bytes) {
  SINTER_CHECK(!gpu_ || !gpu_->stream.is_capturing(),
               "memory of steps grows from {} to {} bytes while a graph is captured", old.size_bytes(),
               size_bytes);
  ++step_memory_epoch_;
  old = Buffer();  // before the new one, not beside it
  old = allocate(size_bytes);
}

TensorView Context::upload(const TensorView& host) {
  if (!gpu_ || host.is_empty()) return host;
  const auto size_bytes = static_cast<size_t>(host.size_bytes());
  const size_t aligned_bytes = (size_bytes + kGpuAlignment - 1) / kGpuAlignment * kGpuAlignment;
  if (uploaded_.empty() || aligned_bytes > uploaded_.back().size_bytes() - uploaded_used_bytes_) {
    uploaded_.push_back(allocate(std::max(aligned_bytes, kUploadBlockBytes)));
    uploaded_used_bytes_ = 0;
  }
  std::byte* const to = uploaded_.back().data() + uploaded_used_bytes_;
  uploaded_used_bytes_ += aligned_bytes;
  gpu_->uploader.copy(to, static_cast<const std::byte*>(host.data()), size_bytes);
  return TensorView(to, host.dtype(), host.shape());
}

void Context::finish_uploads() {
  if (!gpu_) return;
  gpu_->uploader.release();
  placement_.uploaded_bytes = gpu_->uploader.copied_bytes();
  placement_.upload_s = gpu_->uploader.elapsed_s();
}

void Context::read(const TensorView& tensor, std::span<std::byte> host) const {
  const auto size_bytes = static_cast<size_t>(tensor.size_bytes());
  SINTER_CHECK(host.size() >= size_bytes, "{} bytes into {}", size_bytes, host.size());
  if (!gpu_) {
    std::memcpy(host.data(), tensor.data(), size_bytes);
    return;
  }
  gpu_->stream.copy(host.data(), tensor.data(), size_bytes);
  gpu_->stream.synchronize();
}

void Context::synchronize() const {
  if (gpu_) gpu_->stream.synchronize();
}

std::vector<kernels::GpuProgram> Context::programs(std::span<const ops::Problem> problems) const {
  std::vector<kernels::GpuProgram> programs;
  for (const ops::Problem& problem : problems) {
    const std::vector<Verdict> verdicts = explain(problem);
    const auto chosen = std::ranges::find_if(verdicts, &Verdict::chosen);
    if (chosen == verdicts.end()) fail_choice(problem, verdicts, options_, device_);
    const KernelInfo& kernel = *chosen->kernel;
    if (kernel.programs == nullptr) continue;
    for (kernels::GpuProgram& program :
         kernel.programs(problem, device_, kernels::default_config(kernel, problem, device_)))
      programs.push_back(std::move(program));
  }
  return programs;
}

void Context::load_programs(std::span<const ops::Problem> problems,
                            const std::function<void(const jit::Progress&)>& progress) {
  if (gpu_) gpu_->programs.load(programs(problems), progress);
}

std::vector<ops::Problem> Context::problems() const {
  std::vector<ops::Problem> result;
  for (const auto& choices : choices_)
    for (const Choice& choice : choices) result.push_back(choice.problem);
  return result;
}

int64_t longest_gpu_context(uint64_t free_bytes, uint64_t weight_bytes, uint64_t cache_bytes_per_token) {
  const uint64_t taken_bytes = weight_bytes + kGpuWorkBytes;
  if (free_bytes <= taken_bytes) return 0;
  return static_cast<int64_t>((free_bytes - taken_bytes) / std::max<uint64_t>(1, cache_bytes_per_token));
}

}  // namespace sinter::dispatch
