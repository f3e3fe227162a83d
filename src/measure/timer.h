// Wall-clock time of work on the host.
#pragma once

#include <chrono>
#include <vector>

namespace sinter::measure {

class Stopwatch {
 public:
  double elapsed_us() const {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Calls work(round_idx) num_warmups + num_rounds times and times the last num_rounds. Whatever must be cold
// is the caller's to rotate by round_idx: a layer's weights that stay in the cache measure the cache.
template <typename Work>
std::vector<double> time_rounds_us(int num_warmups, int num_rounds, const Work& work) {
  std::vector<double> times_us;
  for (int round_idx = 0; round_idx < num_warmups + num_rounds; ++round_idx) {
    const Stopwatch stopwatch;
    work(round_idx);
    if (round_idx >= num_warmups) times_us.push_back(stopwatch.elapsed_us());
  }
  return times_us;
}

}  // namespace sinter::measure
