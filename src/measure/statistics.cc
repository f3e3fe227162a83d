#include "measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace sinter::measure {
namespace {

double quantile(const std::vector<double>& sorted, double fraction) {
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

}  // namespace

Summary summarize(std::span<const double> samples) {
  if (samples.empty()) return {};
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return {.num_samples = static_cast<int>(sorted.size()),
          .median = quantile(sorted, 0.5),
          .min = sorted.front(),
          .max = sorted.back(),
          .quartile_low = quantile(sorted, 0.25),
          .quartile_high = quantile(sorted, 0.75)};
}

}  // namespace sinter::measure
