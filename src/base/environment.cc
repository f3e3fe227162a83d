#include "base/environment.h"

#include <cstdlib>

namespace sinter {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

const Environment& environment() {
  static const Environment environment{.cpu_isa = variable("SINTER_CPU_ISA"),
                                       .models = variable("SINTER_MODELS"),
                                       .no_color = !variable("NO_COLOR").empty()};
  return environment;
}

}  // namespace sinter
