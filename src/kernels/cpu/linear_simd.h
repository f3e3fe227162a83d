// The linear ops over any form of matrix (RowMajor<Format> or Nvfp4Tile, called Form below). Belongs inside a
// target region.
//
// Activations are prepared once in the order that the form reads them; then every worker takes a contiguous
// range of output rows and streams its weights once per kTokenBlock tokens. No sum is shared between workers.
#pragma once

namespace sinter::kernels::cpu {
namespace {

// Columns [begin, end) of a bf16 row, multiples of 16 within the padded K.
template <class Form>
void prepare(const uint16_t* x, int64_t K, int64_t begin, int64_t end, typename Form::X* to) {
  for (int64_t k = begin; k < end; k += 16) {
    float values[16] = {};
    if (k + 16 <= K) {
      for (int i = 0; i < 16; i += kWidth) store(values + i, load_bf16(x + k + i));
    } else {
      for (int64_t i = k; i < K; ++i) values[i - k] = numerics::from_bf16(x[i]);
    }
    Form::put16(to, k, values);
  }
}

// The worker's share of preparing num_rows rows; row_of(i) is the i-th.
template <class Form, class RowOf>
SINTER_INLINE void prepare_part(const ThreadPool& pool, int worker_idx, int64_t num_rows, int64_t K,
                                const RowOf& row_of, typename Form::X* to) {
  const int64_t columns = Form::padded(K);
  const auto [begin, end] = pool.part(worker_idx, num_rows * columns, 16);
  for (int64_t at = begin; at < end;) {
    const int64_t row = at / columns, stop = std::min(end, (row + 1) * columns);
    prepare<Form>(row_of(row), K, at - row * columns, stop - row * columns, to + row * Form::width(K));
    at = stop;
  }
}

// sink(token, row, sums) for the 16 rows from every `row` of groups [begin, end) and every token.
template <class Form, class XOf, class Sink>
SINTER_INLINE void product(const typename Form::Matrix& w, int64_t begin, int64_t end, int64_t num_tokens,
                           const uint8_t* next, const XOf& x_of, const Sink& sink) {
  alignas(64) float sums[kTokenBlock * kGroup];
  const typename Form::X* x[kTokenBlock];
  if (begin >= end) return;
  for (int64_t first = 0; first < num_tokens; first += kTokenBlock) {
    const int m = static_cast<int>(std::min<int64_t>(kTokenBlock, num_tokens - first));
    for (int i = 0; i < m; ++i) x[i] = x_of(first + i);
    const uint8_t* stop = Form::address(w, end);
    const Ahead ahead{stop, first + m < num_tokens ? Form::address(w, begin) : next != nullptr ? next : stop};
    // Few groups between two sinks: the core stops reading ahead there.
    const int64_t at_once = std::clamp<int64_t>(kTokenBlock / m, 1, 8);
    for (int64_t group = begin; group < end; group += at_once) {
      const int64_t until = std::min(end, group + at_once);
      Form::run(w, group, until, m, x, sums, ahead);
      const float* from = sums;
      for (int64_t g = group; g < until; ++g)
        for (int i = 0; i < m; ++i, from += kGroup) sink(first + i, g * kGroup, from);
    }
  }
}

// y[i] = (y[i] +) sums[i] (+ bias[i]) for `count` columns of a row.
template <int kLimit>
SINTER_INLINE void put_sums(const float* sums, int64_t count, const float* bias, bool accumulate, DType dtype,
                            void* y, int64_t at) {
  float values[kLimit];
  std::memcpy(values, sums, sizeof values);
  if (bias != nullptr)
    for (int64_t i = 0; i < count; ++i) values[i] += bias[at + i];
  if (dtype == DType::kF32) {
    auto* to = static_cast<float*>(y) + at;
    if (accumulate)
      for (int64_t i = 0; i < count; ++i) values[i] += to[i];
    std::memcpy(to, values, static_cast<size_t>(count) * sizeof *to);
    return;
  }
  auto* to = static_cast<uint16_t*>(y) + at;
  if (count == kLimit) {
    for (int i = 0; i < kLimit; i += kWidth) store_bf16(to + i, load(values + i));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = numerics::to_bf16(values[i]);
  }
}

SINTER_INLINE void* row_address(const TensorView& view, int64_t row) {
  return static_cast<std::byte*>(view.data()) +
         row * view.stride(0) * static_cast<int64_t>(size_bytes(view.dtype()));
}

template <class Form>
size_t linear_workspace(const ops::Problem& problem, const Config&) {
  const auto& p = std::get<ops::LinearProblem>(problem);
  return static_cast<size_t>(p.T * Form::width(p.K)) * sizeof(typename Form::X);
}

template <class Form>
void launch_linear(LaunchContext& context, const ops::Problem& problem, const ops::Args& args,
                   const Config&) {
  using X = typename Form::X;
  const auto& p = std::get<ops::LinearProblem>(problem);
  const auto& a = std::get<ops::LinearArgs>(args);
  auto* x = reinterpret_cast<X*>(context.workspace.data());
  const auto w = Form::matrix(a.weight->matrix(), reinterpret_cast<const uint8_t*>(a.weight->packed.data()));
  const float* bias = p.has_bias ? a.bias.data_as<float>() : nullptr;
  const int64_t width = Form::width(p.K), num_groups = (p.N + kGroup - 1) / kGroup;
  ThreadPool& pool = context.pool;
  pool.run([&](int worker_idx) SINTER_VECTORISED {
    prepare_part<Form>(
        pool, worker_idx, p.T, p.K, [&](int64_t t) { return a.x.template row<uint16_t>(t); }, x);
    pool.barrier();
    const auto [begin, end] = pool.part(worker_idx, num_groups);
    product<Form>(
        w, begin, end, p.T, nullptr, [&](int64_t t) { return x + t * width; },
        [&](int64_t t, int64_t n, const float* sums) SINTER_VECTORISED {
          put_sums<kGroup>(sums, std::min<int64_t>(kGroup, p.N - n), bias, p.accumulate, p.y,
                           row_address(a.y, t), n);
        });
  });
}

template <class Form>
size_t head_linear_workspace(const ops::Problem& problem, const Config&) {
  const auto& p = std::get<ops::HeadLinearProblem>(problem);
  return static_cast<size_t>(p.Q * p.T * Form::width(p.K)) * sizeof(typename Form::X);
}

template <class Form>
void launch_head_linear(LaunchContext& context, const ops::Problem& problem, const ops::Args& args,
                        const Config&) {
  using X = typename Form::X;
  const auto& p = std::get<ops::HeadLinearProblem>(problem);
  const auto& a = std::get<ops::HeadLinearArgs>(args);
  auto* x = reinterpret_cast<X*>(context.workspace.data());  // [Q, T, K] prepared
  const int64_t width = Form::width(p.K), num_groups = (p.N + kGroup - 1) / kGroup;
  const auto* data = static_cast<const uint8_t*>(a.weight.data());
  ThreadPool& pool = context.pool;
  pool.run([&](int worker_idx) SINTER_VECTORISED {
    prepare_part<Form>(
        pool, worker_idx, p.Q * p.T, p.K,
        [&](int64_t row) { return a.x.template row<uint16_t>(row % p.T) + row / p.T * a.x.stride(1); }, x);
    pool.barrier();
    const auto [begin, end] = pool.part(worker_idx, p.Q * num_groups);
    for (int64_t at = begin; at < end;) {
      const int64_t q = at / num_groups, stop = std::min(end, (q + 1) * num_groups);
      const typename Form::Matrix w{data + q * p.N * p.K * 2, nullptr, p.N, p.K, 1.0f};
      product<Form>(
          w, at - q * num_groups, stop - q * num_groups, p.T, nullptr,
          [&](int64_t t) { return x + (q * p.T + t) * width; },
          [&](int64_t t, int64_t n, const float* sums) SINTER_VECTORISED {
            put_sums<kGroup>(sums, std::min<int64_t>(kGroup, p.N - n), nullptr, false, p.y,
                             row_address(a.y, t), q * a.y.stride(1) + n);
          });
      at = stop;
    }
  });
}

}  // namespace
}  // namespace sinter::kernels::cpu
