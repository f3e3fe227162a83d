#include "cli/verb.h"

namespace sinter::cli {

std::span<const Verb> verbs() {
  static constexpr Verb kVerbs[] = {
      {"doctor", "What this machine is, what costs speed, and whether a model runs here", define_doctor},
      {"inspect", "What a model is: parameters, formats, bytes by part", define_inspect},
      {"roofline", "The least time of a decode step on a device, part by part", define_roofline},
      {"kernels", "Every kernel: what it runs here, and why not", define_kernels},
      {"compile", "Device code of a model into the cache, for any GPU", define_compile},
      {"generate", "Text from a prompt, streamed", define_generate},
      {"score", "Log-probabilities and perplexity of a text", define_score},
      {"synth", "A checkpoint with random weights for a configuration", define_synth},
      {"quantize", "A bf16 checkpoint to NVFP4 or FP8 in ModelOpt's layout", define_quantize},
  };
  return kVerbs;
}

}  // namespace sinter::cli
