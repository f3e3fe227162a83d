#include "kernels/kernel.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sinter::kernels {
namespace {

double num_bytes(DType dtype, int64_t count) {
  return static_cast<double>(size_bytes(dtype)) * static_cast<double>(count);
}

double product(std::initializer_list<int64_t> factors) {
  double result = 1;
  for (int64_t factor : factors) result *= static_cast<double>(factor);
  return result;
}

// Of matrices that do not agree only the least is known; a limit must not be above the truth.
double weight_bytes(ops::WeightFormat format, int64_t N, int64_t K) {
  if (format == ops::WeightFormat::kMixed) format = ops::WeightFormat::kMxfp4;
  return static_cast<double>(ops::stored_bytes(format, N, K));
}

// Distinct experts that T tokens hit when each draws A of E evenly.
double expected_experts(int64_t T, int64_t E, int64_t A) {
  const double num_experts = static_cast<double>(E);
  const double missed = 1 - static_cast<double>(A) / num_experts;
  return num_experts * (1 - std::pow(missed, static_cast<double>(T)));
}

// Cache rows that B sequences of full length hold, or fewer when T tokens choose `topk` each.
double rows_read(int64_t T, int64_t B, int64_t max_context, int64_t topk) {
  const double dense = product({std::min(B, T), max_context});
  return topk == 0 ? dense : std::min(dense, product({T, std::min(topk, max_context)}));
}

int64_t rows_seen(int64_t max_context, int64_t topk) {
  return topk == 0 ? max_context : std::min(topk, max_context);
}

Cost cost(const ops::EmbeddingProblem& p) {
  return {num_bytes(p.weight, p.T * p.H) + num_bytes(p.y, p.T * p.H) + num_bytes(DType::kI32, p.T), 0};
}

Cost cost(const ops::RmsNormProblem& p) {
  return {num_bytes(p.x, p.N * p.H) + num_bytes(p.y, p.N * p.H) + num_bytes(DType::kF32, p.H),
          4 * product({p.N, p.H})};
}

Cost cost(const ops::LayerNormProblem& p) {
  return {num_bytes(p.x, p.N * p.H) + num_bytes(p.y, p.N * p.H) + num_bytes(DType::kF32, 2 * p.H),
          7 * product({p.N, p.H})};
}

Cost cost(const ops::RopeProblem& p) {
  return {2 * num_bytes(p.x, p.T * p.N * p.R) + num_bytes(DType::kI32, p.T) + num_bytes(DType::kF32, p.R / 2),
          3 * product({p.T, p.N, p.R})};
}

Cost cost(const ops::LinearProblem& p) {
  return {weight_bytes(p.format, p.N, p.K) + num_bytes(p.x, p.T * p.K) +
              num_bytes(p.y, p.T * p.N) * (p.accumulate ? 2 : 1) +
              (p.has_bias ? num_bytes(DType::kF32, p.N) : 0),
          2 * product({p.T, p.N, p.K})};
}

Cost cost(const ops::HeadLinearProblem& p) {
  return {num_bytes(p.weight, p.Q * p.N * p.K) + num_bytes(p.x, p.T * p.Q * p.K) +
              num_bytes(p.y, p.T * p.Q * p.N),
          2 * product({p.T, p.Q, p.N, p.K})};
}

Cost cost(const ops::SiluMulProblem& p) {
  return {2 * num_bytes(p.x, p.T * p.I) + num_bytes(p.y, p.T * p.I), 5 * product({p.T, p.I})};
}

Cost cost(const ops::RouterProblem& p) {
  return {num_bytes(DType::kF32, p.T * p.E + (p.has_bias ? p.E : 0)) + num_bytes(DType::kF32, 2 * p.T * p.A),
          4 * product({p.T, p.E})};
}

Cost cost(const ops::MoeFfnProblem& p) {
  const double expert = 2 * weight_bytes(p.format, p.I, p.H) + weight_bytes(p.format_down, p.H, p.I);
  return {expected_experts(p.T, p.E, p.A) * expert + num_bytes(p.x, p.T * p.H) +
              num_bytes(p.y, p.T * p.H) * (p.accumulate ? 2 : 1) + num_bytes(DType::kF32, 2 * p.T * p.A),
          6 * product({p.T, p.A, p.H, p.I})};
}

Cost cost(const ops::MlaAttentionProblem& p) {
  return {rows_read(p.T, p.B, p.max_context, p.index_topk) * num_bytes(p.cache, p.C + p.R) +
              num_bytes(p.q, p.T * p.Q * (2 * p.C + p.R)) + num_bytes(DType::kI32, p.T * p.index_topk),
          2 * product({p.T, p.Q, rows_seen(p.max_context, p.index_topk), 2 * p.C + p.R})};
}

Cost cost(const ops::GqaAttentionProblem& p) {
  return {rows_read(p.T, p.B, p.max_context, p.index_topk) * num_bytes(p.cache, p.G * (p.D + p.Dv)) +
              num_bytes(p.q, p.T * p.Q * (p.D + p.Dv)) + num_bytes(DType::kI32, p.T * p.index_topk),
          2 * product({p.T, p.Q, rows_seen(p.max_context, p.index_topk), p.D + p.Dv})};
}

Cost cost(const ops::IndexerProblem& p) {
  return {rows_read(p.T, p.B, p.max_context, 0) * num_bytes(p.cache, p.D) +
              num_bytes(p.q, p.T * p.heads * p.D) + num_bytes(DType::kF32, p.T * (p.heads + p.topk)),
          2 * product({p.T, p.heads, p.max_context, p.D + 1})};
}

Cost cost(const ops::CacheWriteProblem& p) {
  return {num_bytes(p.x, p.T * p.W) + num_bytes(p.cache, p.T * p.W), 0};
}

Cost cost(const ops::SampleProblem& p) {
  return {num_bytes(DType::kF32, p.B * p.V) + num_bytes(DType::kI32, p.B), product({p.B, p.V})};
}

}  // namespace

Config::Config(std::initializer_list<std::pair<std::string_view, int64_t>> values) {
  for (const auto& [name, value] : values) values_.emplace_back(name, value);
}

int64_t Config::get(std::string_view name) const {
  for (const auto& [key, value] : values_)
    if (key == name) return value;
  SINTER_CHECK(false, "a kernel's config has no '{}'", name);
}

Support supports(const KernelInfo& kernel, const ops::Problem& problem, const DeviceInfo& device) {
  const bool on_gpu = kernel.processor == Processor::kGpu;
  if (on_gpu != device.gpu.has_value())
    return Support::no(on_gpu ? "runs on an NVIDIA GPU, this device is a CPU"
                              : "runs on a CPU, this device is a GPU");
  return kernel.supports(problem, device);
}

Cost op_cost(const ops::Problem& problem) {
  return std::visit([](const auto& numbers) { return cost(numbers); }, problem);
}

Cost cost_of(const KernelInfo& kernel, const ops::Problem& problem) {
  return kernel.cost == nullptr ? op_cost(problem) : kernel.cost(problem);
}

Config default_config(const KernelInfo& kernel, const ops::Problem& problem, const DeviceInfo& device) {
  if (kernel.configs == nullptr) return {};
  const std::vector<Config> configs = kernel.configs(problem, device);
  SINTER_CHECK(!configs.empty(), "{} offers no config for {}", kernel.name, ops::describe(problem));
  return configs.front();
}

size_t workspace_bytes(const KernelInfo& kernel, const ops::Problem& problem, const Config& config) {
  return kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(problem, config);
}

}  // namespace sinter::kernels
