#include "workbench/doctor.h"

#include <fmt/core.h>

#include <algorithm>

#include "device/device_info.h"
#include "workbench/gpu_machine.h"
#include "workbench/inspect.h"

namespace sinter::workbench {
namespace {

constexpr int64_t kPrefillTokens = 512;
constexpr int64_t kTypicalContext = 4096;
// Packing makes a copy of the weights; a quarter more leaves room to work.
constexpr double kPackedShare = 1.25;

double gb(double size_bytes) { return size_bytes / 1e9; }

Finding examine_fit(double weight_bytes, double memory_bytes, double available_bytes) {
  Finding finding{Level::kOk, "weights",
                  fmt::format("{:.3f} GB; memory {:.1f} GB, {:.1f} GB available", gb(weight_bytes),
                              gb(memory_bytes), gb(available_bytes)),
                  ""};
  if (weight_bytes > memory_bytes) {
    finding.level = Level::kFailure;
    finding.text += ": they do not fit";
    finding.mend = "a machine with more memory, or a narrower format (--store)";
  } else if (weight_bytes > available_bytes) {
    finding.level = Level::kFailure;
    finding.text += ": they do not fit beside what runs now";
    finding.mend = "end other programs";
  } else if (weight_bytes * kPackedShare > available_bytes) {
    finding.level = Level::kWarning;
    finding.text += ": they are used in place, which is slower than packed";
    finding.mend = fmt::format("{:.1f} GB of available memory", gb(weight_bytes * kPackedShare));
  }
  return finding;
}

Finding examine_gpu_fit(const DeviceInfo& device, double weight_bytes, double available_bytes) {
  Finding finding{Level::kOk, "weights",
                  fmt::format("{:.3f} GB; {} has {:.1f} GB, {:.1f} GB free", gb(weight_bytes), device.name,
                              gb(static_cast<double>(device.memory_bytes)), gb(available_bytes)),
                  ""};
  if (device.memory_bytes == 0) {
    finding.level = Level::kNote;
    finding.text = fmt::format("{:.3f} GB; the memory of {} is not known", gb(weight_bytes), device.name);
  } else if (weight_bytes > available_bytes) {
    finding.level = Level::kFailure;
    finding.text += ": they do not fit";
    finding.mend = "--device cpu, a GPU with more memory, or a narrower format (--store)";
  }
  return finding;
}

Finding examine_context(const ModelReport& report, const models::DecoderSpec& spec) {
  Finding finding{Level::kOk, "context",
                  fmt::format("{} bytes of cache per token: up to {} of {} tokens",
                              report.cache_bytes_per_token, report.longest_context, spec.max_positions),
                  ""};
  if (report.longest_context < std::min(kTypicalContext, spec.max_positions)) {
    finding.level = Level::kWarning;
    finding.mend = "more memory";
  }
  return finding;
}

void add_missing_kernels(const std::vector<ProblemVerdicts>& problems, std::vector<Finding>& findings) {
  for (const ProblemVerdicts& problem : problems) {
    if (problem.chosen() != nullptr) continue;
    std::string reasons;
    for (const dispatch::Verdict& verdict : problem.verdicts)
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", verdict.kernel->name, verdict.reason);
    findings.push_back({Level::kFailure, "kernel",
                        fmt::format("none for {} ({}): {}", problem.problem.where,
                                    describe(problem.problem.problem), reasons.empty() ? "no row" : reasons),
                        ""});
  }
}

}  // namespace

bool ModelReport::can_run() const {
  return std::ranges::find(findings, Level::kFailure, &Finding::level) == findings.end();
}

ModelReport examine_model(const ModelFolder& folder, const StoreMap& what_if, const DeviceInfo& device) {
  ModelReport report;
  const Inventory inventory = take_inventory(folder, what_if);
  const Inspection inspection = inspect(folder, inventory);
  report.weight_bytes = inspection.bytes;
  report.cache_bytes_per_token = inspection.cache_bytes_per_token;

  report.device = device.name;
  const uint64_t available =
      device.gpu ? static_cast<uint64_t>(free_memory_bytes(*device.gpu)) : dispatch::available_memory_bytes();
  const double memory_bytes = static_cast<double>(device.memory_bytes);
  const double available_bytes = available == 0 ? memory_bytes : static_cast<double>(available);
  const double weight_bytes = static_cast<double>(report.weight_bytes);
  const double left_bytes = std::max(0.0, available_bytes - weight_bytes);
  const int64_t token_bytes = std::max<int64_t>(1, report.cache_bytes_per_token);
  int64_t fitting = static_cast<int64_t>(left_bytes / static_cast<double>(token_bytes));
  if (device.gpu)
    fitting = device.memory_bytes == 0
                  ? folder.spec.max_positions
                  : dispatch::longest_gpu_context(static_cast<uint64_t>(available_bytes),
                                                  static_cast<uint64_t>(report.weight_bytes),
                                                  static_cast<uint64_t>(token_bytes));
  report.longest_context = std::min(folder.spec.max_positions, fitting);
  if (!folder.checkpoint.has_weights())
    report.findings.push_back(
        {Level::kWarning, "checkpoint", "only a configuration: what its weights would need", ""});
  report.findings.push_back(device.gpu ? examine_gpu_fit(device, weight_bytes, available_bytes)
                                       : examine_fit(weight_bytes, memory_bytes, available_bytes));
  report.findings.push_back(examine_context(report, folder.spec));

  ThreadPool pool(1);
  const bool is_packed = device.gpu || weight_bytes * kPackedShare <= available_bytes;
  const dispatch::Context context(device, pool,
                                  {.reference = false, .pack_weights = is_packed, .forced = {}});
  const int64_t tokens = std::max<int64_t>(1, std::min(kTypicalContext, report.longest_context));
  report.decode = explain_model(context, model_problems(folder.spec, inventory, 1, tokens));
  report.prefill = explain_model(
      context, model_problems(folder.spec, inventory, std::min(kPrefillTokens, tokens), tokens));
  add_missing_kernels(report.decode, report.findings);
  return report;
}

}  // namespace sinter::workbench
