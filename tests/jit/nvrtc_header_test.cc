#include <gtest/gtest.h>
#include <nvrtc.h>

#include <type_traits>

#include "jit/nvrtc_abi.h"

namespace sinter::jit {
namespace {

// Ours stands for theirs: the same type, an int for an enumeration, a handle for a handle.
template <typename Ours, typename Theirs>
constexpr bool stands_for() {
  if constexpr (std::is_same_v<Ours, Theirs>) {
    return true;
  } else if constexpr (std::is_enum_v<Theirs>) {
    return std::is_same_v<Ours, int> && sizeof(Theirs) == sizeof(int);
  } else if constexpr (std::is_same_v<Theirs, nvrtcProgram>) {
    return std::is_same_v<Ours, NvrtcProgram>;
  } else if constexpr (std::is_same_v<Theirs, nvrtcProgram*>) {
    return std::is_same_v<Ours, NvrtcProgram*>;
  }
  return false;
}

template <typename Result, typename... Ours, typename TheirResult, typename... Theirs>
constexpr bool agree(Result (*)(Ours...), TheirResult (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) != sizeof...(Theirs)) {
    return false;
  } else {
    return stands_for<Result, TheirResult>() && (stands_for<Ours, Theirs>() && ...);
  }
}

#define SINTER_AGREES(member, function) \
  static_assert(agree(decltype(NvrtcFunctions::member)(nullptr), decltype (&function)(nullptr)))

SINTER_AGREES(error_string, nvrtcGetErrorString);
SINTER_AGREES(version, nvrtcVersion);
SINTER_AGREES(create_program, nvrtcCreateProgram);
SINTER_AGREES(destroy_program, nvrtcDestroyProgram);
SINTER_AGREES(compile_program, nvrtcCompileProgram);
SINTER_AGREES(log_size, nvrtcGetProgramLogSize);
SINTER_AGREES(log, nvrtcGetProgramLog);
SINTER_AGREES(cubin_size, nvrtcGetCUBINSize);
SINTER_AGREES(cubin, nvrtcGetCUBIN);

// A difference is seen.
static_assert(!agree(decltype(NvrtcFunctions::cubin)(nullptr), decltype (&nvrtcGetCUBINSize)(nullptr)));
static_assert(!agree(decltype(NvrtcFunctions::version)(nullptr), decltype (&nvrtcGetErrorString)(nullptr)));

TEST(NvrtcHeader, HasTheResultsThatWeKnow) {
  EXPECT_EQ(kNvrtcSuccess, NVRTC_SUCCESS);
  EXPECT_EQ(kNvrtcInvalidOption, NVRTC_ERROR_INVALID_OPTION);
  EXPECT_EQ(kNvrtcCompilation, NVRTC_ERROR_COMPILATION);
}

}  // namespace
}  // namespace sinter::jit
