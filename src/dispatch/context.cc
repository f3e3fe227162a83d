#include <fmt/ranges.h>

#include "base/error.h"
#include "dispatch/dispatch.h"

namespace sinter::dispatch {
namespace {

using kernels::KernelInfo;
using kernels::Support;
using ops::WeightLayout;

// Problems of one op that are remembered: far more than a model has at once, so that only prompt lengths
// long past are forgotten.
constexpr size_t kMaxChoices = 256;

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

// Whether the context may take a row at all, before any question about the problem.
Support is_admitted(const KernelInfo& kernel, const Options& options, bool packing_allowed) {
  if (const auto it = options.forced.find(kernel.op); it != options.forced.end() && it->second != kernel.name)
    return Support::no(fmt::format("{} is forced", it->second));
  if (options.reference && !kernel.is_oracle) return Support::no("only plain float32 kernels are wanted");
  if (!packing_allowed && is_packed(kernel.layout))
    return Support::no(
        fmt::format("needs weights packed as {}, and they are used in place", name(kernel.layout)));
  return Support::yes();
}

[[noreturn]] void fail_choice(const ops::Problem& problem, const std::vector<Verdict>& verdicts,
                              const Options& options) {
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
               .mend = forced == options.forced.end() ? "" : "force another kernel, or none"});
}

}  // namespace

Context::Context(const DeviceInfo& device, ThreadPool& pool, Options options)
    : device_(device),
      pool_(pool),
      options_(std::move(options)),
      packing_allowed_(options_.pack_weights && !options_.reference) {
  for (const auto& [op, kernel_name] : options_.forced) {
    const KernelInfo* kernel = kernels::find_kernel(kernel_name);
    std::string problem;
    if (kernel == nullptr)
      problem = "no such kernel";
    else if (kernel->op != op)
      problem = fmt::format("a kernel for {}", name(kernel->op));
    else if (options_.reference && !kernel->is_oracle)
      problem = "not a plain float32 kernel, which --reference demands";
    else if (!options_.pack_weights && is_packed(kernel->layout))
      problem = "a kernel that needs packed weights";
    if (problem.empty()) continue;
    std::vector<std::string_view> known;
    for (const KernelInfo* row : kernels::registry())
      if (row->op == op) known.push_back(row->name);
    throw Error(ErrorKind::kUsage,
                {.where = fmt::format("forced kernel '{}'", kernel_name),
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

void Context::expect_weights(uint64_t size_bytes) {
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

ops::PackedWeights Context::prepare(const ops::Problem& problem, ops::Weights weights) {
  for (const Verdict& verdict : explain(problem)) {
    if (!verdict.chosen) continue;
    const KernelInfo& kernel = *verdict.kernel;
    (is_packed(kernel.layout) ? placement_.packed_bytes : placement_.in_place_bytes) += stored_bytes(weights);
    ops::PackedWeights result{.source = std::move(weights), .layout = kernel.layout, .packed = {}};
    if (is_packed(kernel.layout)) {
      result.packed = Buffer::host(kernel.packed_bytes(result.source));
      kernels::LaunchContext launch{pool_, {}};
      kernel.pack(launch, result.source, result.packed.bytes());
    }
    return result;
  }
  fail_choice(problem, explain(problem), options_);
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
  if (kernel == nullptr) fail_choice(problem, verdicts, options_);
  kernels::Config config = kernels::default_config(*kernel, problem, device_);
  const size_t workspace_bytes = kernels::workspace_bytes(*kernel, problem, config);
  if (choices.size() == kMaxChoices) choices.pop_back();
  choices.push_front({problem, layout, kernel, std::move(config), workspace_bytes});
  return choices.front();
}

void Context::run(const ops::Problem& problem, const ops::Args& args) {
  check_args(problem, args);
  const Choice& choice = choose(problem, layout_of(args));
  if (choice.workspace_bytes > workspace_.size_bytes()) {
    workspace_ = {};  // before the new one, not beside it
    workspace_ = Buffer::host(choice.workspace_bytes);
  }
  kernels::LaunchContext launch{pool_, workspace_.bytes()};
  choice.kernel->launch(launch, problem, args, choice.config);
}

}  // namespace sinter::dispatch
