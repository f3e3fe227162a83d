// NVRTC's functions that we call, as in nvrtc.h of CUDA 11.1 to 13. A test compares them with that file.
#pragma once

#include <cstddef>

namespace sinter::jit {

using NvrtcProgram = struct OpaqueNvrtcProgram*;
using NvrtcResult = int;  // an enumeration there

struct NvrtcFunctions {
  const char* (*error_string)(NvrtcResult);
  NvrtcResult (*version)(int* major, int* minor);
  NvrtcResult (*create_program)(NvrtcProgram*, const char* source, const char* name, int num_headers,
                                const char* const* headers, const char* const* include_names);
  NvrtcResult (*destroy_program)(NvrtcProgram*);
  NvrtcResult (*compile_program)(NvrtcProgram, int num_options, const char* const* options);
  NvrtcResult (*log_size)(NvrtcProgram, size_t*);
  NvrtcResult (*log)(NvrtcProgram, char*);
  NvrtcResult (*cubin_size)(NvrtcProgram, size_t*);
  NvrtcResult (*cubin)(NvrtcProgram, char*);
};

constexpr NvrtcResult kNvrtcSuccess = 0, kNvrtcInvalidOption = 5, kNvrtcCompilation = 6;

}  // namespace sinter::jit
