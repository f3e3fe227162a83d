// Device code as text. The build puts every src/kernels/**/*.cu and src/kernels/gpu/**/*.h into the binary;
// nothing is read from disk, so that a compile depends on the binary alone.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace sinter::jit {

struct SourceFile {
  std::string_view path;  // below src/kernels: "cuda/moe_ffn.cu", "gpu/mma.h"
  std::string_view text;
};

using Sources = std::span<const SourceFile>;

// All that the binary holds, sorted by path.
Sources embedded_sources();
// Throws Error(kInternal) when the binary does not hold `path`.
std::string_view embedded_source(std::string_view path);

// `path` and all that it includes, directly or not, each once, `path` first. An include that a preprocessor
// condition hides counts too. Throws Error(kInternal) with file and line for an include that is not of the
// form "gpu/..." or is not in `sources`, and for an unknown `path`.
std::vector<SourceFile> with_includes(Sources sources, std::string_view path);

}  // namespace sinter::jit
