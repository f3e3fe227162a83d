// How the CPU benchmarks measure: rounds of a read sweep and of the kernel back to back, so that both see the
// same machine, and the kernel's bytes per second as a share of the sweep's.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "measure/ceilings.h"
#include "measure/statistics.h"
#include "measure/timer.h"

namespace sinter::benchmarks {

struct Options {
  std::string kernel;  // part of its name; empty: all
  std::vector<int64_t> widths, tokens, threads;
  int num_rounds = 20;
  bool json = false;

  // --kernel NAME --width N,N --tokens N,N --threads N,N --rounds N --json
  void parse(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string_view key = argv[i];
      if (key == "--json") {
        json = true;
        continue;
      }
      const std::string value = i + 1 < argc ? argv[++i] : "";
      if (key == "--kernel")
        kernel = value;
      else if (key == "--width")
        widths = numbers(key, value);
      else if (key == "--tokens")
        tokens = numbers(key, value);
      else if (key == "--threads")
        threads = numbers(key, value);
      else if (key == "--rounds")
        num_rounds = static_cast<int>(numbers(key, value).front());
      else
        throw Error(ErrorKind::kUsage, {.where = std::string(argv[0]),
                                        .expected = "--kernel --width --tokens --threads --rounds --json",
                                        .found = std::string(key),
                                        .mend = {}});
    }
  }

 private:
  static std::vector<int64_t> numbers(std::string_view key, const std::string& text) {
    std::vector<int64_t> values;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      int64_t value = 0;
      for (size_t i = at; i < end; ++i) {
        if (text[i] < '0' || text[i] > '9' || value > 1'000'000) value = -1'000'000'000;
        value = value * 10 + (text[i] - '0');
      }
      if (value <= 0) break;
      values.push_back(value);
      at = end + 1;
    }
    if (values.empty())
      throw Error(
          ErrorKind::kUsage,
          {.where = std::string(key), .expected = "numbers: 1,4,16", .found = "'" + text + "'", .mend = {}});
    return values;
  }
};

struct Result {
  measure::Placement placement = measure::Placement::kUnknown;
  int num_rounds = 0, num_dropped = 0;  // dropped: moved by the host within the round
  measure::Summary kernel, sweep;       // bytes per second
  measure::Summary share;               // kernel / sweep of the same round
};

// Per round: where are we, one sweep, calls for at least 30 ms, where are we. `prepare` draws the next call's
// input, untimed, and returns the bytes that it makes `call` read. The placement seen most often is reported.
template <typename Prepare, typename Call>
Result measure_rounds(ThreadPool& pool, measure::ReadSweep& sweep, int num_rounds, const Prepare& prepare,
                      const Call& call) {
  struct Samples {
    std::vector<double> kernel, sweep, share;
  };
  std::map<measure::Placement, Samples> found;
  Result result;
  // Memory just written is slower to read at first: by a third, seen for a second.
  for (const measure::Stopwatch warming; warming.elapsed_us() < 2e6;) {
    prepare();
    call();
  }
  for (int round = 0; round < num_rounds; ++round) {
    const measure::Placement before = measure::find_placement(pool);
    const double swept = sweep.run();
    std::vector<double> rates;
    const measure::Stopwatch batch;
    do {
      const double bytes = prepare();
      const measure::Stopwatch one;
      call();
      rates.push_back(bytes / one.elapsed_us() * 1e6);
    } while (batch.elapsed_us() < 30e3);
    if (measure::find_placement(pool) != before) {
      ++result.num_dropped;
      continue;
    }
    Samples& samples = found[before];
    samples.kernel.push_back(measure::summarize(rates).median);
    samples.sweep.push_back(swept);
    samples.share.push_back(samples.kernel.back() / swept);
  }
  for (const auto& [placement, samples] : found) {
    if (static_cast<int>(samples.share.size()) <= result.num_rounds) continue;
    result.placement = placement;
    result.num_rounds = static_cast<int>(samples.share.size());
    result.kernel = measure::summarize(samples.kernel);
    result.sweep = measure::summarize(samples.sweep);
    result.share = measure::summarize(samples.share);
  }
  return result;
}

inline void print(const Options& options, std::string_view kernel, std::string_view shape, int64_t num_tokens,
                  int num_threads, double us, std::string_view pattern, const Result& r) {
  if (options.json) {
    fmt::print(
        "{{\"kernel\": \"{}\", \"shape\": \"{}\", \"tokens\": {}, \"threads\": {}, \"placement\": \"{}\", "
        "\"rounds\": {}, \"dropped\": {}, \"time_us\": {:.1f}, \"gb_per_s\": {:.2f}, \"read_gb_per_s\": "
        "{:.2f}, "
        "\"read_pattern\": \"{}\", \"share\": {:.3f}, \"share_low\": {:.3f}, \"share_high\": {:.3f}}}\n",
        kernel, shape, num_tokens, num_threads, name(r.placement), r.num_rounds, r.num_dropped, us,
        r.kernel.median * 1e-9, r.sweep.median * 1e-9, pattern, r.share.median, r.share.quartile_low,
        r.share.quartile_high);
  } else {
    fmt::print(
        "{:34} {:20} T={:<3} {:2} threads {:10} {:9.1f} us {:7.2f} GB/s of {:7.2f} ({}) = {:5.1f} % "
        "({:.0f}..{:.0f}), {} rounds",
        kernel, shape, num_tokens, num_threads, name(r.placement), us, r.kernel.median * 1e-9,
        r.sweep.median * 1e-9, pattern, 100 * r.share.median, 100 * r.share.quartile_low,
        100 * r.share.quartile_high, r.num_rounds);
    if (r.num_dropped > 0) fmt::print(", {} dropped", r.num_dropped);
    fmt::print("\n");
  }
  std::fflush(stdout);
}

// The main() of a benchmark.
template <typename Run>
int report_errors(const Run& run) {
  try {
    run();
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.kind() == ErrorKind::kUsage ? 2 : 1;
  }
}

}  // namespace sinter::benchmarks
