// The oracles against the formulas of src/ops, written again in double precision with decoders of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "contract/tensor_values.h"
#include "kernels/cpu/philox.h"
#include "kernels/kernel.h"
#include "measure/arguments.h"
#include "measure/cases.h"

namespace sinter {
namespace {

using Values = std::vector<double>;
using Outputs = std::vector<Values>;

double e2m1(int code) {
  const double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return code < 8 ? magnitudes[code] : -magnitudes[code - 8];
}

double e4m3(int code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return code < 128 ? magnitude : -magnitude;
}

// [N, K]
Values decode(const ops::Weight& weight) {
  using enum ops::WeightFormat;
  Values w;
  if (weight.format == kF32 || weight.format == kF16 || weight.format == kBF16) return values_of(weight.data);
  const auto* codes = static_cast<const uint8_t*>(weight.data.data());
  const auto* scales = static_cast<const uint8_t*>(weight.scale.data());
  for (int64_t n = 0; n < weight.N; ++n)
    for (int64_t k = 0; k < weight.K; ++k) {
      const int64_t i = n * weight.K + k;
      const int nibble = codes[i / 2] >> (i % 2 * 4) & 15;
      switch (weight.format) {
        case kFp8Tensor: w.push_back(e4m3(codes[i]) * weight.scale_tensor); break;
        case kFp8Block:
          w.push_back(e4m3(codes[i]) *
                      weight.scale.data_as<float>()[n / 128 * weight.scale.dim(1) + k / 128]);
          break;
        case kNvfp4: w.push_back(e2m1(nibble) * e4m3(scales[i / 16]) * weight.scale_tensor); break;
        case kMxfp4: w.push_back(e2m1(nibble) * std::ldexp(1.0, scales[i / 32] - 127)); break;
        default: ADD_FAILURE();
      }
    }
  return w;
}

double silu(double x) { return x / (1 + std::exp(-x)); }

// As a kernel stores it between two steps.
double rounded(double x, DType dtype) {
  return dtype == DType::kBF16 ? numerics::from_bf16(numerics::to_bf16(static_cast<float>(x))) : x;
}

double dot(const double* a, const double* b, int64_t count) {
  return std::inner_product(a, a + count, b, 0.0);
}

Outputs expected(const ops::EmbeddingProblem& p, const ops::EmbeddingArgs& a) {
  const Values ids = values_of(a.ids), weight = values_of(a.weight);
  Values y;
  for (double id : ids)
    for (int64_t h = 0; h < p.H; ++h) y.push_back(weight[static_cast<int64_t>(id) * p.H + h]);
  return {y};
}

Outputs expected(const ops::RmsNormProblem& p, const ops::RmsNormArgs& a) {
  Values x = values_of(a.x);
  const Values weight = values_of(a.weight);
  for (int64_t n = 0; n < p.N; ++n) {
    double* row = &x[n * p.H];
    const double scale = 1 / std::sqrt(dot(row, row, p.H) / static_cast<double>(p.H) + p.eps);
    for (int64_t h = 0; h < p.H; ++h) row[h] *= scale * weight[h];
  }
  return {x};
}

Outputs expected(const ops::LayerNormProblem& p, const ops::LayerNormArgs& a) {
  Values x = values_of(a.x);
  const Values weight = values_of(a.weight), bias = values_of(a.bias);
  for (int64_t n = 0; n < p.N; ++n) {
    double* row = &x[n * p.H];
    const double mean = std::accumulate(row, row + p.H, 0.0) / static_cast<double>(p.H);
    for (int64_t h = 0; h < p.H; ++h) row[h] -= mean;
    const double scale = 1 / std::sqrt(dot(row, row, p.H) / static_cast<double>(p.H) + p.eps);
    for (int64_t h = 0; h < p.H; ++h) row[h] = row[h] * scale * weight[h] + bias[h];
  }
  return {x};
}

Outputs expected(const ops::RopeProblem& p, const ops::RopeArgs& a) {
  Values x = values_of(a.x);
  for (int64_t t = 0; t < p.T; ++t)
    for (int64_t n = 0; n < p.N; ++n)
      for (int64_t i = 0; i < p.R / 2; ++i) {
        // The angle itself is a float32 by contract: at position 200000 that is 0.01 radians.
        const float angle =
            static_cast<float>(a.positions.data_as<int32_t>()[t]) * a.inv_freq.data_as<float>()[i];
        const double cos = std::cos(double{angle}) * p.scale, sin = std::sin(double{angle}) * p.scale;
        double* row = &x[(t * p.N + n) * p.R];
        double& first = row[p.interleaved ? 2 * i : i];
        double& second = row[p.interleaved ? 2 * i + 1 : i + p.R / 2];
        const double before = first;
        first = before * cos - second * sin;
        second = before * sin + second * cos;
      }
  return {x};
}

Outputs expected(const ops::LinearProblem& p, const ops::LinearArgs& a) {
  const Values x = values_of(a.x), w = decode(a.weight->matrix());
  Values y = p.accumulate ? values_of(a.y) : Values(p.T * p.N);
  for (int64_t t = 0; t < p.T; ++t)
    for (int64_t n = 0; n < p.N; ++n) {
      y[t * p.N + n] += dot(&x[t * p.K], &w[n * p.K], p.K);
      if (p.has_bias) y[t * p.N + n] += values_of(a.bias)[n];
    }
  return {y};
}

Outputs expected(const ops::HeadLinearProblem& p, const ops::HeadLinearArgs& a) {
  const Values x = values_of(a.x), w = values_of(a.weight);
  Values y;
  for (int64_t t = 0; t < p.T; ++t)
    for (int64_t q = 0; q < p.Q; ++q)
      for (int64_t n = 0; n < p.N; ++n)
        y.push_back(dot(&x[(t * p.Q + q) * p.K], &w[(q * p.N + n) * p.K], p.K));
  return {y};
}

Outputs expected(const ops::SiluMulProblem&, const ops::SiluMulArgs& a) {
  Values gate = values_of(a.gate);
  const Values up = values_of(a.up);
  for (size_t i = 0; i < gate.size(); ++i) gate[i] = silu(gate[i]) * up[i];
  return {gate};
}

Outputs expected(const ops::RouterProblem& p, const ops::RouterArgs& a) {
  const Values z = values_of(a.logits), bias = p.has_bias ? values_of(a.bias) : Values(p.E);
  Values ids, weights;
  for (int64_t t = 0; t < p.T; ++t) {
    Values s(z.begin() + t * p.E, z.begin() + (t + 1) * p.E);
    double sum = 0;
    for (double logit : s) sum += std::exp(logit);
    for (double& value : s)
      value = p.scoring == ops::RouterScoring::kSoftmax ? std::exp(value) / sum : 1 / (1 + std::exp(-value));
    Values b = s;
    for (int64_t e = 0; e < p.E; ++e) b[e] += bias[e];
    if (p.num_groups > 1) {
      const int64_t size = p.E / p.num_groups;
      std::vector<std::pair<double, int64_t>> groups;
      for (int64_t g = 0; g < p.num_groups; ++g) {
        Values group(b.begin() + g * size, b.begin() + (g + 1) * size);
        std::ranges::sort(group, std::greater<>());
        groups.emplace_back(-(group[0] + (size > 1 ? group[1] : 0)), g);
      }
      std::ranges::sort(groups);
      for (int64_t i = p.topk_groups; i < p.num_groups; ++i)
        std::fill_n(b.begin() + groups[i].second * size, size, -INFINITY);
    }
    std::vector<int64_t> order(p.E);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int64_t l, int64_t r) { return b[l] > b[r]; });
    double total = 1e-20;
    for (int64_t i = 0; i < p.A; ++i) total += s[order[i]];
    for (int64_t i = 0; i < p.A; ++i) {
      ids.push_back(static_cast<double>(order[i]));
      weights.push_back(s[order[i]] / (p.normalize ? total : 1) * p.scale);
    }
  }
  return {ids, weights};
}

Outputs expected(const ops::MoeFfnProblem& p, const ops::MoeFfnArgs& a) {
  const Values x = values_of(a.x), weights = values_of(a.weights), ids = values_of(a.ids);
  Values y = p.accumulate ? values_of(a.y) : Values(p.T * p.H);
  std::vector<Values> gates, ups, downs;
  for (int64_t e = 0; e < p.E; ++e) {
    gates.push_back(decode(a.experts->experts().gate[e]));
    ups.push_back(decode(a.experts->experts().up[e]));
    downs.push_back(decode(a.experts->experts().down[e]));
  }
  for (int64_t s = 0; s < p.T * p.A; ++s) {
    if (ids[s] < 0) continue;
    const auto e = static_cast<size_t>(ids[s]);
    const int64_t t = s / p.A;
    Values hidden(p.I);
    for (int64_t i = 0; i < p.I; ++i)
      hidden[i] = rounded(
          silu(dot(&x[t * p.H], &gates[e][i * p.H], p.H)) * dot(&x[t * p.H], &ups[e][i * p.H], p.H), p.x);
    for (int64_t h = 0; h < p.H; ++h)
      y[t * p.H + h] += weights[s] * dot(hidden.data(), &downs[e][h * p.I], p.I);
  }
  return {y};
}

// Row of a token's position in a cache of W numbers a row.
Values cache_row(const TensorView& cache, const ops::PagedBatch& batch, int64_t t, int64_t position) {
  const int64_t P = cache.dim(1);
  const int32_t page = batch.page_table.row<int32_t>(batch.seq_idx.data_as<int32_t>()[t])[position / P];
  return values_of(cache.slice(0, page, page + 1).slice(1, position % P, position % P + 1));
}

std::vector<int64_t> positions_of(const ops::PagedBatch& batch, const TensorView& indices, int64_t t) {
  std::vector<int64_t> positions(batch.positions.data_as<int32_t>()[t] + 1);
  std::iota(positions.begin(), positions.end(), 0);
  if (indices.is_empty()) return positions;
  positions.clear();
  for (int64_t i = 0; i < indices.dim(1); ++i)
    if (indices.row<int32_t>(t)[i] >= 0) positions.push_back(indices.row<int32_t>(t)[i]);
  return positions;
}

void softmax(Values& scores) {
  if (scores.empty()) return;
  const double max = *std::ranges::max_element(scores);
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - max);
  for (double& score : scores) score /= sum;
}

Outputs expected(const ops::MlaAttentionProblem& p, const ops::MlaAttentionArgs& a) {
  const Values q_latent = values_of(a.q_latent), q_pe = values_of(a.q_pe);
  Values y(p.T * p.Q * p.C);
  for (int64_t t = 0; t < p.T; ++t) {
    std::vector<Values> rows;
    for (int64_t position : positions_of(a.batch, a.indices, t))
      rows.push_back(cache_row(a.cache, a.batch, t, position));
    for (int64_t q = t * p.Q; q < (t + 1) * p.Q; ++q) {
      Values scores;
      for (const Values& row : rows)
        scores.push_back((dot(&q_latent[q * p.C], row.data(), p.C) + dot(&q_pe[q * p.R], &row[p.C], p.R)) *
                         p.scale);
      softmax(scores);
      for (size_t i = 0; i < rows.size(); ++i)
        for (int64_t c = 0; c < p.C; ++c) y[q * p.C + c] += scores[i] * rows[i][c];
    }
  }
  return {y};
}

Outputs expected(const ops::GqaAttentionProblem& p, const ops::GqaAttentionArgs& a) {
  const Values queries = values_of(a.q);
  Values y(p.T * p.Q * p.Dv);
  for (int64_t t = 0; t < p.T; ++t) {
    std::vector<Values> keys, values;
    for (int64_t position : positions_of(a.batch, a.indices, t)) {
      keys.push_back(cache_row(a.k_cache, a.batch, t, position));
      values.push_back(cache_row(a.v_cache, a.batch, t, position));
    }
    for (int64_t q = 0; q < p.Q; ++q) {
      const int64_t g = q * p.G / p.Q;
      Values scores;
      for (const Values& key : keys)
        scores.push_back(dot(&queries[(t * p.Q + q) * p.D], &key[g * p.D], p.D) * p.scale);
      softmax(scores);
      for (size_t i = 0; i < keys.size(); ++i)
        for (int64_t d = 0; d < p.Dv; ++d) y[(t * p.Q + q) * p.Dv + d] += scores[i] * values[i][g * p.Dv + d];
    }
  }
  return {y};
}

Outputs expected(const ops::CacheWriteProblem& p, const ops::CacheWriteArgs& a) {
  Values cache = values_of(a.cache);
  const Values x = values_of(a.x);
  for (int64_t t = 0; t < p.T; ++t) {
    const int32_t position = a.batch.positions.data_as<int32_t>()[t];
    const int32_t page =
        a.batch.page_table.row<int32_t>(a.batch.seq_idx.data_as<int32_t>()[t])[position / p.P];
    for (int64_t i = 0; i < p.W; ++i)
      cache[(page * p.P + position % p.P) * p.W + i] = rounded(x[t * p.W + i], p.cache);
  }
  return {cache};
}

Outputs expected(const ops::SampleProblem& p, const ops::SampleArgs& a) {
  const Values logits = values_of(a.logits);
  Values ids;
  for (int64_t b = 0; b < p.B; ++b) {
    const ops::SampleParams& params = a.params[b];
    Values z(logits.begin() + b * p.V, logits.begin() + (b + 1) * p.V);
    for (int64_t v = 0; v < p.V; ++v) {
      const auto count = std::ranges::count(a.history[b], v);
      if (count == 0) continue;
      z[v] = z[v] > 0 ? z[v] / params.repetition_penalty : z[v] * params.repetition_penalty;
      z[v] -= params.frequency_penalty * static_cast<double>(count) + params.presence_penalty;
    }
    std::vector<int64_t> order(p.V);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int64_t l, int64_t r) { return z[l] > z[r]; });
    if (params.temperature == 0) {
      ids.push_back(static_cast<double>(order[0]));
      continue;
    }
    if (params.top_k > 0 && params.top_k < p.V) order.resize(params.top_k);
    Values probabilities;
    for (int64_t v : order) probabilities.push_back(z[v] / params.temperature);
    softmax(probabilities);
    size_t kept = 0;
    for (double mass = 0; kept < order.size() && (kept == 0 || mass < params.top_p); ++kept)
      mass += probabilities[kept];
    while (kept > 1 && probabilities[kept - 1] < params.min_p * probabilities[0]) --kept;
    const double total = std::accumulate(probabilities.begin(), probabilities.begin() + kept, 0.0);
    double left = kernels::cpu::philox_uniform(params.seed, a.draw_idx[b]) * total;
    size_t chosen = 0;
    while (chosen + 1 < kept && left >= probabilities[chosen]) left -= probabilities[chosen++];
    ids.push_back(static_cast<double>(order[chosen]));
  }
  return {ids};
}

// Not one answer but a property: float32 decides near ties.
void expect_largest_chosen(const ops::IndexerProblem& p, const ops::IndexerArgs& a) {
  const Values q = values_of(a.q), w = values_of(a.w);
  for (int64_t t = 0; t < p.T; ++t) {
    const int64_t num_visible = a.batch.positions.data_as<int32_t>()[t] + 1;
    const int64_t num_chosen = std::min(num_visible, p.topk);
    const int32_t* indices = a.indices.row<int32_t>(t);
    std::vector<bool> chosen(num_visible);
    for (int64_t i = 0; i < p.topk; ++i) {
      if (i >= num_chosen) {
        ASSERT_EQ(indices[i], -1);
        continue;
      }
      ASSERT_TRUE(indices[i] >= 0 && indices[i] < num_visible && (i == 0 || indices[i] > indices[i - 1]));
      chosen[indices[i]] = true;
    }
    Values scores;
    double magnitude = 0;
    for (int64_t i = 0; i < num_visible; ++i) {
      const Values k = cache_row(a.k_cache, a.batch, t, i);
      double score = 0;
      for (int64_t h = 0; h < p.heads; ++h)
        score += w[t * p.heads + h] * std::max(0.0, dot(&q[(t * p.heads + h) * p.D], k.data(), p.D));
      scores.push_back(score);
      magnitude = std::max(magnitude, std::abs(score));
    }
    for (int64_t i = 0; i < num_visible; ++i)
      for (int64_t j = 0; j < num_visible; ++j)
        if (chosen[i] && !chosen[j]) {
          ASSERT_TRUE(scores[i] == scores[j] ? i < j : scores[i] >= scores[j] - 1e-5 * magnitude)
              << "token " << t << " took row " << i << " before " << j;
        }
  }
}

void expect_near(const Values& found, const Values& expected, DType dtype) {
  ASSERT_EQ(found.size(), expected.size());
  if (dtype == DType::kI32) {
    ASSERT_EQ(found, expected);
    return;
  }
  double error = 0, norm = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(found[i])) continue;
    error += (found[i] - expected[i]) * (found[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  // float32 sums of some hundred products, or one rounding to bf16, half of 2^-7 at the most; chance may
  // cancel a few numbers.
  const double allowed = (dtype == DType::kBF16 ? 0x1p-8 + 1e-5 : 2e-6) * (found.size() < 32 ? 50 : 1);
  ASSERT_LE(std::sqrt(error), allowed * std::sqrt(norm));
}

class Oracle : public testing::TestWithParam<int> {};

TEST_P(Oracle, AgreesWithTheFormula) {
  const auto op = static_cast<ops::Op>(GetParam());
  const kernels::KernelInfo* oracle = nullptr;
  for (const kernels::KernelInfo* kernel : kernels::registry())
    if (kernel->op == op && kernel->is_oracle) oracle = kernel;
  ASSERT_NE(oracle, nullptr);
  ThreadPool pool(2);
  uint64_t seed = std::random_device()();
  int num_run = 0;
  for (const auto& one :
       measure::load_cases(SINTER_SOURCE_DIR "/benchmarks/cases", measure::CaseUse::kTest)) {
    if (ops::op_of(one.problem) != op || kernels::op_cost(one.problem).operations > 3e6) continue;
    SCOPED_TRACE(testing::Message() << one.name << ", seed " << ++seed);
    measure::Arguments arguments(one, seed);
    arguments.pack_for(*oracle, pool);
    Outputs answer;
    std::visit(
        [&](const auto& p, const auto& a) {
          if constexpr (requires { expected(p, a); }) answer = expected(p, a);
        },
        one.problem, arguments.args());
    Buffer workspace = Buffer::host(kernels::workspace_bytes(*oracle, one.problem, {}));
    kernels::LaunchContext context{.pool = pool, .workspace = workspace.bytes()};
    oracle->launch(context, one.problem, arguments.args(), {});
    for (size_t i = 0; i < answer.size(); ++i) {
      const TensorView& view = arguments.outputs()[i].view;
      // An intermediate in bf16 may round the other way, whatever the output is.
      const auto* moe = std::get_if<ops::MoeFfnProblem>(&one.problem);
      const bool rounds = moe != nullptr && moe->x == DType::kBF16;
      expect_near(values_of(view), answer[i], rounds ? DType::kBF16 : view.dtype());
    }
    if (op == ops::Op::kIndexer)
      expect_largest_chosen(std::get<ops::IndexerProblem>(one.problem),
                            std::get<ops::IndexerArgs>(arguments.args()));
    ++num_run;
    if (HasFatalFailure() || HasFailure()) return;
  }
  EXPECT_GT(num_run, 2);
}

INSTANTIATE_TEST_SUITE_P(Ops, Oracle, testing::Range(0, ops::kNumOps), [](const auto& row) {
  return std::string(ops::name(static_cast<ops::Op>(row.param)));
});

}  // namespace
}  // namespace sinter
