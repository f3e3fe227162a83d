// Two declarations of one C function, ours and a vendor header's, compared as the binary interface sees them.
#pragma once

#include <type_traits>

namespace sinter::testing {

// Enumerations are integers of their size, pointers to structs all alike; signs and const do not matter.
template <typename T>
struct Abi {
  using type = T;
};
template <typename T>
requires std::is_enum_v<T>
struct Abi<T> : Abi<std::underlying_type_t<T>> {
};
template <>
struct Abi<unsigned> {
  using type = int;
};
template <typename T>
struct Abi<T*> {
  using pointee = std::remove_const_t<T>;
  using type = std::conditional_t<std::is_class_v<pointee>, void*, typename Abi<pointee>::type*>;
};
template <typename Result, typename... Parameters>
struct Abi<Result (*)(Parameters...)> {
  using type = typename Abi<Result>::type (*)(typename Abi<Parameters>::type...);
};

template <typename A, typename B>
inline constexpr bool kSameAbi = std::is_same_v<typename Abi<A>::type, typename Abi<B>::type>;

}  // namespace sinter::testing
