// Address spaces, scalar and vector types, vector constructors, threadgroup variables.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "../runner.h"

#ifdef MSL_ADDRSPACE
// The pass that checks syntax only: mixing address spaces is an error, as on a Mac.
#define device __attribute__((address_space(1)))
#define constant __attribute__((address_space(2))) const
#define threadgroup __attribute__((address_space(3)))
#else
#define device
#define constant const
#define threadgroup
#endif
#define thread
// Not inlined into the entry points, whose own accesses are not traced.
#define kernel __attribute__((noinline))

typedef _Float16 half;
typedef __bf16 bfloat;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

#define MSL_VECTORS(T)                                \
  typedef T T##2 __attribute__((ext_vector_type(2))); \
  typedef T T##3 __attribute__((ext_vector_type(3))); \
  typedef T T##4 __attribute__((ext_vector_type(4)));
MSL_VECTORS(float)
MSL_VECTORS(half)
MSL_VECTORS(bfloat)
MSL_VECTORS(char)
MSL_VECTORS(uchar)
MSL_VECTORS(short)
MSL_VECTORS(ushort)
MSL_VECTORS(int)
MSL_VECTORS(uint)
MSL_VECTORS(long)
MSL_VECTORS(ulong)
MSL_VECTORS(bool)

namespace msl {

template <class T>
using type = T;

template <class T, int N>
using vector = T __attribute__((ext_vector_type(N)));

template <class T>
struct lanes {
  static constexpr int n = 1;
  using e = T;
};
template <class T, int N>
struct lanes<T __attribute__((ext_vector_type(N)))> {
  static constexpr int n = N;
  using e = T;
};

/// One of 8- and 16-bit floats, that C++ promotes to float.
template <class T>
constexpr bool is_short_float = std::is_same_v<T, half> || std::is_same_v<T, bfloat>;

template <class V, int I>
inline void put(V&) {}
template <class V, int I, class A, class... R>
inline void put(V& v, A a, R... rest) {
  using E = typename lanes<V>::e;
  if constexpr (lanes<A>::n == 1) {
    v[I] = (E)a;
  } else {
    for (int i = 0; i < lanes<A>::n; ++i) v[I + i] = (E)a[i];
  }
  put<V, I + lanes<A>::n>(v, rest...);
}

/// MSL's vector constructors: float4(x), float4(xy, z, w), half4(float4).
template <class V, class... A>
inline V make(A... a) {
  using E = typename lanes<V>::e;
  V v{};
  if constexpr (sizeof...(A) == 1 && (lanes<A>::n + ...) == 1) {
    const E e = E((a, ...));
    for (int i = 0; i < lanes<V>::n; ++i) v[i] = e;
  } else if constexpr (sizeof...(A) > 0) {
    static_assert((lanes<A>::n + ...) == lanes<V>::n,
                  "a vector constructor needs as many components as the vector has");
    put<V, 0>(v, a...);
  }
  return v;
}

/// Applies f to each component.
template <class R, class F, class T, class... U>
inline R map(F f, T a, U... more) {
  if constexpr (lanes<T>::n == 1) {
    return (R)f(a, more...);
  } else {
    R r;
    for (int i = 0; i < lanes<T>::n; ++i) r[i] = (typename lanes<R>::e)f(a[i], more[i]...);
    return r;
  }
}

template <class T>
constexpr uint32_t shared_bytes() {
  return (sizeof(T) + 15) / 16 * 16;
}
template <class T>
inline T& shared() {
  return *(T*)msl_shared(shared_bytes<T>());
}

inline uint32_t simdgroups(const MslDispatch* d) {
  const uint32_t* v = d->group_size.v;
  return (v[0] * v[1] * v[2] + kMslLanes - 1) / kMslLanes;
}

}  // namespace msl

namespace metal {

template <class T, int N>
using vec = msl::vector<T, N>;
using ::size_t;

template <class U, class T>
inline U as_type(T x) {
  static_assert(sizeof(U) == sizeof(T), "as_type needs types of one size");
  return __builtin_bit_cast(U, x);
}

}  // namespace metal
