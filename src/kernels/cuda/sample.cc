#include "kernels/cuda/launch.h"
#include "kernels/gpu/sample_params.h"

namespace sinter::kernels::cuda {
namespace {

using Problem = ops::SampleProblem;

// The workspace, every part aligned to 256 bytes.
struct Parts {
  explicit Parts(const Problem& p) {
    rows = 0;
    counts_of_history = aligned(p.B * static_cast<int64_t>(sizeof(gpu::SampleRow)));
    keys = counts_of_history + aligned(p.B * p.V * static_cast<int64_t>(sizeof(gpu::TokenCount)));
    counts = keys + aligned(p.B * p.V * 4);
    size_bytes = counts + aligned(p.B * p.V * 4);
  }
  static int64_t aligned(int64_t size) { return (size + 255) / 256 * 256; }
  int64_t rows, counts_of_history, keys, counts, size_bytes;
};

Support supports(const ops::Problem& problem, const DeviceInfo&) {
  const auto& p = std::get<Problem>(problem);
  return fits_32_bits({{"B", p.B}, {"V", p.V}});
}

GpuProgram program() { return {"cuda/sample.cu", {}}; }

// Appends every token of `history` once, with how often it is there.
void count_tokens(std::span<const int32_t> history, std::vector<int32_t>& place_of,
                  std::vector<gpu::TokenCount>& counts) {
  const size_t first = counts.size();
  for (const int32_t token : history) {
    int32_t& place = place_of[static_cast<size_t>(token)];
    if (place < 0) {
      place = static_cast<int32_t>(counts.size());
      counts.push_back({token, 0});
    }
    ++counts[static_cast<size_t>(place)].count;
  }
  for (size_t i = first; i < counts.size(); ++i) place_of[static_cast<size_t>(counts[i].token)] = -1;
}

bool has_penalties(const ops::SampleParams& params) {
  return params.repetition_penalty != 1 || params.presence_penalty != 0 || params.frequency_penalty != 0;
}

// Parameters and histories come from the host: not to be recorded into a graph.
void launch(LaunchContext& context, const ops::Problem& problem, const ops::Args& args, const Config&) {
  const auto& p = std::get<Problem>(problem);
  const auto& a = std::get<ops::SampleArgs>(args);
  SINTER_CHECK(!context.gpu->stream.is_capturing(), "sampling parameters in a graph would never change");
  std::vector<gpu::SampleRow> rows;
  std::vector<gpu::TokenCount> counts;
  std::vector<int32_t> place_of;
  rows.reserve(static_cast<size_t>(p.B));
  for (size_t b = 0; b < static_cast<size_t>(p.B); ++b) {
    const ops::SampleParams& params = a.params[b];
    const size_t first = counts.size();
    if (has_penalties(params)) {
      place_of.resize(static_cast<size_t>(p.V), -1);
      count_tokens(a.history[b], place_of, counts);
    }
    rows.push_back({.temperature = params.temperature,
                    .top_k = params.top_k,
                    .top_p = params.top_p,
                    .min_p = params.min_p,
                    .repetition_penalty = params.repetition_penalty,
                    .presence_penalty = params.presence_penalty,
                    .frequency_penalty = params.frequency_penalty,
                    .num_tokens = narrow(static_cast<int64_t>(counts.size() - first)),
                    .first_token = static_cast<long long>(first),
                    .seed = params.seed,
                    .draw_idx = a.draw_idx[b]});
  }
  const Parts parts(p);
  std::byte* const workspace = context.workspace.data();
  std::byte *const rows_there = workspace + parts.rows, *const history = workspace + parts.counts_of_history,
                   *const keys = workspace + parts.keys, *const counts_there = workspace + parts.counts;
  // From ordinary memory: free again when the call returns.
  context.gpu->stream.copy(rows_there, rows.data(), rows.size() * sizeof(gpu::SampleRow));
  if (!counts.empty())
    context.gpu->stream.copy(history, counts.data(), counts.size() * sizeof(gpu::TokenCount));
  cuda::launch(context, program(), "sample", shape_of({blocks(p.B, 1)}, gpu::kSampleThreads),
               memory(a.logits), rows_there, history, keys, counts_there, memory(a.ids),
               gpu::SampleParams{narrow(p.V)});
}

}  // namespace

extern const KernelInfo sample = {
    .name = "cuda.sample",
    .op = ops::Op::kSample,
    .processor = Processor::kGpu,
    .supports = supports,
    .workspace_bytes =
        [](const ops::Problem& problem, const Config&) {
          return static_cast<size_t>(Parts(std::get<Problem>(problem)).size_bytes);
        },
    .programs = [](const ops::Problem&, const DeviceInfo&, const Config&) { return std::vector{program()}; },
    .launch = launch,
};

}  // namespace sinter::kernels::cuda
