// The compiler's text, shortened to what an error line has room for.
#pragma once

#include <string>
#include <string_view>

namespace sinter::jit {

struct Diagnostics {
  std::string where;  // of the first error: "cuda/moe_ffn.cu:12", or `path` when its line is not known
  std::string
      text;  // every error once, "; " between them; from the second place on a new place stands before it
};

// The errors in NVRTC's `log`, warnings and quoted source left out; the whole log when there is none in it.
Diagnostics parse_errors(std::string_view log, std::string_view path);

}  // namespace sinter::jit
