// Numeric functions: of floats by libm, of short floats through float, of vectors by component.
#pragma once

#include "msl_types.h"

namespace msl {

/// f(float) for any floating type; the result has the type of the argument.
template <class T, class F>
inline T float_function(F f, T x) {
  return map<T>([f](auto e) { return f((float)e); }, x);
}

template <class T>
inline T mulhi(T a, T b) {
  using Wide = std::conditional_t<std::is_signed_v<T>, long, ulong>;
  return T(Wide(a) * Wide(b) >> 8 * sizeof(T));
}

}  // namespace msl

namespace metal {

#define MSL_FLOAT(name, f)                                             \
  template <class T>                                                   \
  inline T name(T x) {                                                 \
    return msl::float_function([](float e) -> float { return f; }, x); \
  }
MSL_FLOAT(exp, ::expf(e))
MSL_FLOAT(exp2, ::exp2f(e))
MSL_FLOAT(log, ::logf(e))
MSL_FLOAT(log2, ::log2f(e))
MSL_FLOAT(sqrt, ::sqrtf(e))
MSL_FLOAT(rsqrt, 1.0f / ::sqrtf(e))
MSL_FLOAT(sin, ::sinf(e))
MSL_FLOAT(cos, ::cosf(e))
MSL_FLOAT(tanh, ::tanhf(e))
MSL_FLOAT(floor, ::floorf(e))
MSL_FLOAT(ceil, ::ceilf(e))
MSL_FLOAT(trunc, ::truncf(e))
MSL_FLOAT(rint, ::rintf(e))
MSL_FLOAT(round, ::roundf(e))
MSL_FLOAT(fabs, ::fabsf(e))
MSL_FLOAT(saturate, e > 0.0f ? (e < 1.0f ? e : 1.0f) : 0.0f)

inline bool isnan(float x) { return x != x; }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline float pow(float a, float b) { return ::powf(a, b); }
inline float fmod(float a, float b) { return ::fmodf(a, b); }
inline float copysign(float a, float b) { return ::copysignf(a, b); }

template <class T>
inline T fma(T a, T b, T c) {
  // A product of two short floats is exact in float.
  return msl::map<T>([](auto x, auto y, auto z) { return ::fmaf((float)x, (float)y, (float)z); }, a,
                     b, c);
}
template <class T>
inline T abs(T x) {
  return msl::map<T>([](auto e) { return e < 0 ? -e : e; }, x);
}
// Of a NaN and a number, the number, as in MSL for floats.
template <class T>
inline T max(T a, T b) {
  return msl::map<T>([](auto x, auto y) { return x > y || y != y ? x : y; }, a, b);
}
template <class T>
inline T min(T a, T b) {
  return msl::map<T>([](auto x, auto y) { return x < y || y != y ? x : y; }, a, b);
}
template <class T>
inline T fmax(T a, T b) {
  return max(a, b);
}
template <class T>
inline T fmin(T a, T b) {
  return min(a, b);
}
template <class T>
inline T clamp(T x, T low, T high) {
  return min(max(x, low), high);
}
template <class T>
inline T select(T a, T b, bool condition) {
  return condition ? b : a;
}
template <class T>
inline T mulhi(T a, T b) {
  return msl::map<T>([](auto x, auto y) { return msl::mulhi(x, y); }, a, b);
}
template <class T>
inline auto dot(T a, T b) {
  typename msl::lanes<T>::e total = 0;
  for (int i = 0; i < msl::lanes<T>::n; ++i) total += a[i] * b[i];
  return total;
}
inline uint popcount(uint x) { return __builtin_popcount(x); }
inline uint clz(uint x) { return x ? __builtin_clz(x) : 32; }
inline uint ctz(uint x) { return x ? __builtin_ctz(x) : 32; }

namespace fast {
using metal::exp, metal::exp2, metal::log, metal::rsqrt, metal::sqrt, metal::sin, metal::cos,
    metal::tanh;
}
namespace precise {
using metal::exp, metal::exp2, metal::log, metal::log2, metal::rsqrt, metal::sqrt, metal::sin,
    metal::cos, metal::tanh, metal::pow;
}

}  // namespace metal
