// What the contract tests of all devices run over.
#pragma once

#include <cstdlib>
#include <random>
#include <stdexcept>
#include <vector>

#include "kernels/kernel.h"
#include "measure/cases.h"

namespace sinter {

inline const std::vector<measure::Case>& all_cases() {
  static const std::vector<measure::Case> cases =
      measure::load_cases(SINTER_SOURCE_DIR "/benchmarks/cases", measure::CaseUse::kTest);
  return cases;
}

// SINTER_TEST_SEED repeats a failure; a failure prints it.
inline uint64_t base_seed() {
  static const uint64_t seed = [] {
    const char* given = std::getenv("SINTER_TEST_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  }();
  return seed;
}

inline const kernels::KernelInfo& oracle_of(ops::Op op) {
  for (const kernels::KernelInfo* kernel : kernels::registry())
    if (kernel->op == op && kernel->is_oracle) return *kernel;
  throw std::logic_error("no oracle");
}

// "cpu_linear_plain": a row's name as that of a test.
inline std::string test_name(const kernels::KernelInfo& kernel) {
  std::string name(kernel.name);
  for (char& c : name)
    if (c == '.') c = '_';
  return name;
}

}  // namespace sinter
