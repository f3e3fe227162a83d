// What a set of timings says: the median, how far to trust it, and the extremes.
#pragma once

#include <span>

namespace sinter::measure {

struct Summary {
  int num_samples = 0;
  double median = 0;
  double min = 0, max = 0;
  double quartile_low = 0, quartile_high = 0;

  // Interquartile range over the median: 0.02 reads "within about 1 % either way".
  double spread() const { return median == 0 ? 0 : (quartile_high - quartile_low) / median; }
};

// All zeros for no samples. Quantiles are interpolated between neighbours.
Summary summarize(std::span<const double> samples);

}  // namespace sinter::measure
