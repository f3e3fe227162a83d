// Filter for compare_with_ml_dtypes.py: numerics_convert OPERATION [ROWS BLOCKS], bytes from stdin to stdout.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "numerics/bf16.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/e8m0.h"
#include "numerics/fp16.h"
#include "numerics/scale_layout.h"

namespace {

using Bytes = std::vector<uint8_t>;

Bytes read_stdin() {
  Bytes bytes(size_t{1} << 26);
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), stdin));
  return bytes;
}

template <typename From, typename To>
Bytes map_elements(const Bytes& input, To (*convert)(From)) {
  Bytes output(input.size() / sizeof(From) * sizeof(To));
  for (size_t i = 0; i < input.size() / sizeof(From); ++i) {
    From from;
    std::memcpy(&from, &input[i * sizeof(From)], sizeof(From));
    const To to = convert(from);
    std::memcpy(&output[i * sizeof(To)], &to, sizeof(To));
  }
  return output;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace sinter::numerics;
  const std::map<std::string, std::function<Bytes(const Bytes&)>> conversions = {
      {"to_bf16", [](const Bytes& x) { return map_elements(x, to_bf16); }},
      {"from_bf16", [](const Bytes& x) { return map_elements(x, from_bf16); }},
      {"to_fp16", [](const Bytes& x) { return map_elements(x, to_fp16); }},
      {"from_fp16", [](const Bytes& x) { return map_elements(x, from_fp16); }},
      {"to_e4m3", [](const Bytes& x) { return map_elements(x, to_e4m3); }},
      {"from_e4m3", [](const Bytes& x) { return map_elements(x, from_e4m3); }},
      {"to_e8m0_ceil", [](const Bytes& x) { return map_elements(x, to_e8m0_ceil); }},
      {"from_e8m0", [](const Bytes& x) { return map_elements(x, from_e8m0); }},
      {"to_e2m1", [](const Bytes& x) { return map_elements(x, to_e2m1); }},
      {"from_e2m1", [](const Bytes& x) { return map_elements(x, from_e2m1); }},
  };
  if (argc < 2) return 2;
  const std::string operation = argv[1];
  const Bytes input = read_stdin();
  Bytes output;
  if (operation == "tile_scales" && argc == 4) {
    const int64_t rows = std::atoll(argv[2]), blocks = std::atoll(argv[3]);
    output.assign(static_cast<size_t>(tiled_scales_bytes(rows, blocks)), 0xaa);
    tile_scales(input, rows, blocks, output);
  } else if (const auto found = conversions.find(operation); found != conversions.end()) {
    output = found->second(input);
  } else {
    return 2;
  }
  std::fwrite(output.data(), 1, output.size(), stdout);
}
