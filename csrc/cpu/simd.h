// Vectors of W lanes for generated kernels: one meaning, the best instructions of each set.
//
// Everything lives in a namespace named after the instruction set, so that inline functions
// compiled with different flags never share a symbol. Only generated kernels include this file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#pragma GCC diagnostic ignored "-Wpsabi"
#if !defined(__clang__)  // GCC 12 warns about its own _mm512_undefined
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace butter::cpu::BUTTER_ISA {

#if defined(__AVX512F__)
constexpr int W = 16;
#elif defined(__AVX2__)
constexpr int W = 8;
#else
constexpr int W = 4;
#endif

typedef float vf __attribute__((vector_size(4 * W)));
typedef int32_t vi __attribute__((vector_size(4 * W)));
typedef uint32_t vu __attribute__((vector_size(4 * W)));
typedef vi vm;  // a mask: all bits of a lane set or clear
struct f16 {
  uint16_t bits;
};
struct bf16 {
  uint16_t bits;
};

template <typename To, typename From>
inline To bits(From x) {
  static_assert(sizeof(To) == sizeof(From));
  To y;
  std::memcpy(&y, &x, sizeof y);
  return y;
}

// -- making vectors ----------------------------------------------------------------------------

inline vi lane_ids() {
  vi v = {};
  for (int i = 0; i < W; ++i) v[i] = i;
  return v;
}
// Not vf{} + x: adding zero changes -0, so it would stay an addition.
inline vf vf_all(float x) {
#if defined(__AVX512F__)
  return (vf)_mm512_set1_ps(x);
#elif defined(__AVX2__)
  return (vf)_mm256_set1_ps(x);
#elif defined(__x86_64__)
  return (vf)_mm_set1_ps(x);
#else
  return (vf)vdupq_n_f32(x);
#endif
}
inline vi vi_all(int32_t x) { return vi{} + x; }
inline vu vu_all(uint32_t x) { return vu{} + x; }
inline vm mask_all(bool x) { return vi{} - int32_t(x); }
inline vi vi_ramp(int32_t base, int32_t stride) { return lane_ids() * stride + base; }
inline vu vu_ramp(uint32_t base, int32_t stride) { return (vu)(lane_ids() * stride) + base; }
inline vm mask_first(uint32_t count) { return (vu)lane_ids() < vu_all(count); }
inline vi vi_from_mask(vm m) { return -m; }
inline vu vu_from_mask(vm m) { return (vu)-m; }
inline vf vf_from_mask(vm m) { return __builtin_convertvector(-m, vf); }

inline vf to_vf(vi x) { return __builtin_convertvector(x, vf); }
inline vf to_vf(vu x) { return __builtin_convertvector(x, vf); }
inline vi to_vi(vf x) { return __builtin_convertvector(x, vi); }
inline vi to_vi(vu x) { return (vi)x; }
inline vu to_vu(vi x) { return (vu)x; }
// Through signed conversion where the value fits, which is one instruction before AVX-512.
inline vu to_vu(vf x) {
  const vf half = vf_all(2147483648.0f);
  const vm big = x >= half;
  return (vu)to_vi(big ? x - half : x) ^ ((vu)big & vu_all(0x80000000u));
}

// -- reductions --------------------------------------------------------------------------------

// Halves are combined pairwise, so the order is the same for every compiler. Shuffles written out:
// a loop over single lanes goes through memory.
template <typename V, typename F>
inline auto fold(V x, F f) {
  if constexpr (W == 16) {
    x = f(x, __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14,
                                     15));
    x = f(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7));
    x = f(x, __builtin_shufflevector(x, x, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3));
    x = f(x, __builtin_shufflevector(x, x, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
  } else if constexpr (W == 8) {
    x = f(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 4, 5, 6, 7));
    x = f(x, __builtin_shufflevector(x, x, 2, 3, 2, 3, 2, 3, 2, 3));
    x = f(x, __builtin_shufflevector(x, x, 1, 1, 1, 1, 1, 1, 1, 1));
  } else {
    x = f(x, __builtin_shufflevector(x, x, 2, 3, 2, 3));
    x = f(x, __builtin_shufflevector(x, x, 1, 1, 1, 1));
  }
  return x[0];
}

#if defined(__AVX2__)
inline __m256 low256(vf x) {
#if defined(__AVX512F__)
  return _mm512_castps512_ps256((__m512)x);
#else
  return (__m256)x;
#endif
}
template <typename F>
inline float fold256(__m256 x, F f) {
  __m128 a = f(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  a = f(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(f(a, _mm_movehdup_ps(a)));
}
#define BUTTER_FOLD(name, op256, op128)                                \
  inline float name(vf x) {                                            \
    __m256 a = low256(x);                                              \
    if constexpr (W == 16) a = op256(a, high256(x));                   \
    return fold256(a, [](__m128 p, __m128 q) { return op128(p, q); }); \
  }
inline __m256 high256(vf x) {
#if defined(__AVX512F__)
  return _mm512_extractf32x8_ps((__m512)x, 1);
#else
  return (__m256)x;
#endif
}
BUTTER_FOLD(warp_sum, _mm256_add_ps, _mm_add_ps)
BUTTER_FOLD(warp_max, _mm256_max_ps, _mm_max_ps)
BUTTER_FOLD(warp_min, _mm256_min_ps, _mm_min_ps)
#undef BUTTER_FOLD
#else
inline float warp_sum(vf x) {
  return fold(x, [](vf a, vf b) { return a + b; });
}
inline float warp_max(vf x) {
  return fold(x, [](vf a, vf b) { return a > b ? a : b; });
}
inline float warp_min(vf x) {
  return fold(x, [](vf a, vf b) { return a < b ? a : b; });
}
#endif
inline int32_t warp_sum(vi x) {
  return fold(x, [](vi a, vi b) { return a + b; });
}
inline uint32_t warp_sum(vu x) {
  return fold(x, [](vu a, vu b) { return a + b; });
}
inline int32_t warp_max(vi x) {
  return fold(x, [](vi a, vi b) { return a > b ? a : b; });
}
inline uint32_t warp_max(vu x) {
  return fold(x, [](vu a, vu b) { return a > b ? a : b; });
}
inline int32_t warp_min(vi x) {
  return fold(x, [](vi a, vi b) { return a < b ? a : b; });
}
inline uint32_t warp_min(vu x) {
  return fold(x, [](vu a, vu b) { return a < b ? a : b; });
}

template <typename V>
inline auto warp_read(V x, uint32_t lane) {
  return x[lane % W];
}
template <typename V>
inline V warp_scan_sum(V x) {
  for (int i = 1; i < W; ++i) x[i] += x[i - 1];
  return x;
}
inline bool any_(vm m) {
#if defined(__AVX512F__)
  return _mm512_test_epi32_mask((__m512i)m, (__m512i)m) != 0;
#elif defined(__AVX2__)
  return _mm256_movemask_epi8((__m256i)m) != 0;
#else
  return fold(m, [](vi a, vi b) { return a | b; }) != 0;
#endif
}

// -- arithmetic --------------------------------------------------------------------------------

inline float fma_(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;  // without the instruction a correctly rounded fma costs a library call
#endif
}
inline vf fma_(vf a, vf b, vf c) {
#if defined(__AVX512F__)
  return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
  return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  return a * b + c;
#endif
}
template <typename V>
inline V min_(V a, V b) {
  return a < b ? a : b;
}
template <typename V>
inline V max_(V a, V b) {
  return a > b ? a : b;
}
template <typename V>
inline V div_(V a, V b) {
  return a / b;
}
template <typename V>
inline V mod_(V a, V b) {
  return a % b;
}
// A lane that is switched off may hold a zero divisor.
template <typename V>
inline V div_(V a, V b, vm m) {
  return a / (m ? b : V{} + 1);
}
template <typename V>
inline V mod_(V a, V b, vm m) {
  return a % (m ? b : V{} + 1);
}
inline uint32_t mulhi_(uint32_t a, uint32_t b) { return uint32_t((uint64_t(a) * b) >> 32); }
inline vu mulhi_(vu a, vu b) {
  vu r = {};
  for (int i = 0; i < W; ++i) r[i] = mulhi_(a[i], b[i]);
  return r;
}
inline float abs_(float x) { return __builtin_fabsf(x); }
inline int32_t abs_(int32_t x) { return x < 0 ? -x : x; }
inline uint32_t abs_(uint32_t x) { return x; }
inline vf abs_(vf x) { return (vf)((vi)x & 0x7fffffff); }
inline vi abs_(vi x) { return x < 0 ? -x : x; }
inline float sqrt_(float x) { return __builtin_sqrtf(x); }
inline float rsqrt_(float x) { return 1.0f / __builtin_sqrtf(x); }
inline vf sqrt_(vf x) {
#if defined(__AVX512F__)
  return (vf)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX2__)
  return (vf)_mm256_sqrt_ps((__m256)x);
#else
  for (int i = 0; i < W; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}
inline vf rsqrt_(vf x) { return 1.0f / sqrt_(x); }

// To nearest even: adding and taking away 1.5 * 2^23 leaves no fraction; larger values have none.
inline vf rint_(vf x) {
#if defined(__AVX512F__)
  return (vf)_mm512_roundscale_ps((__m512)x, 0);
#elif defined(__AVX2__)
  return (vf)_mm256_round_ps((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
  const vf magic = vf_all(12582912.0f);
  return abs_(x) < 4194304.0f ? (x + magic) - magic : x;
#endif
}
inline vf floor_(vf x) {
  const vf r = rint_(x);
  return r > x ? r - 1.0f : r;
}
inline vf ceil_(vf x) { return -floor_(-x); }

// e^x = 2^n * e^r with |r| <= ln2/2; the polynomial's coefficients are those of Cephes' expf.
inline vf exp_(vf x) {
  const vm low = x < -87.33654f, high = x > 88.72283f, nan = x != x;
  vf c = low ? vf_all(-87.33654f) : x;
  c = high ? vf_all(88.72283f) : c;
  const vf n = rint_(c * 1.44269504088896341f);
  vf r = fma_(n, vf_all(-0.693359375f), c);
  r = fma_(n, vf_all(2.12194440e-4f), r);
  vf p = vf_all(1.9875691500e-4f);
  p = fma_(p, r, vf_all(1.3981999507e-3f));
  p = fma_(p, r, vf_all(8.3334519073e-3f));
  p = fma_(p, r, vf_all(4.1665795894e-2f));
  p = fma_(p, r, vf_all(1.6666665459e-1f));
  p = fma_(p, r, vf_all(5.0000001201e-1f));
  p = fma_(p, r * r, r) + 1.0f;
  // In two factors: 2^128 itself is not a float.
  const vi k = to_vi(n), k1 = k >> 1, k2 = k - k1;
  p = p * (vf)((k1 + 127) << 23) * (vf)((k2 + 127) << 23);
  p = low ? vf{} : p;
  p = high ? vf_all(__builtin_inff()) : p;
  return nan ? x : p;
}
// ln x for normal x > 0: mantissa in [sqrt(1/2), sqrt(2)), series in s = (m-1)/(m+1); 2 ulp.
inline vf log_(vf x) {
  const vm tiny = x < 1.17549435e-38f;
  const vf scaled = tiny ? x * 8388608.0f : x;
  const vi b = (vi)scaled - 0x3f3504f3;
  const vf e = to_vf(b >> 23) + (tiny ? vf_all(-23.0f) : vf{});
  const vf m = (vf)((b & 0x7fffff) + 0x3f3504f3);
  const vf s = (m - 1.0f) / (m + 1.0f), z = s * s;
  vf p = vf_all(0.22222222f);
  p = fma_(p, z, vf_all(0.28571429f));
  p = fma_(p, z, vf_all(0.4f));
  p = fma_(p, z, vf_all(0.66666667f));
  vf r = fma_(e, vf_all(0.693147180f), fma_(p * z, s, 2.0f * s));
  r = x == __builtin_inff() ? x : r;
  r = x == 0.0f ? vf_all(-__builtin_inff()) : r;
  return x < 0.0f || x != x ? vf_all(__builtin_nanf("")) : r;
}
inline vf tanh_(vf x) {
  const vf e = exp_(2.0f * abs_(x));
  const vf far = 1.0f - 2.0f / (e + 1.0f);
  const vf z = x * x;  // near zero the quotient cancels: odd Taylor terms
  vf p = vf_all(-0.0088632355f);
  p = fma_(p, z, vf_all(0.021869489f));
  p = fma_(p, z, vf_all(-0.053968254f));
  p = fma_(p, z, vf_all(0.13333333f));
  p = fma_(p, z, vf_all(-0.33333333f));
  const vf r = abs_(x) < 0.3f ? fma_(p * z, abs_(x), abs_(x)) : far;
  return (vf)((vi)r | ((vi)x & (vi)vf_all(-0.0f)));  // the sign of x, that of -0 too
}
// Cody-Waite reduction by pi/2 in three parts, then the polynomials of Cephes' sinf and cosf.
inline vf sincos_(vf x, int quarter) {
  const vf n = rint_(x * 0.636619772367581343f);
  vf r = fma_(n, vf_all(-1.5703125f), x);
  r = fma_(n, vf_all(-4.837512969970703125e-4f), r);
  r = fma_(n, vf_all(-7.549789948768648e-8f), r);
  const vi q = to_vi(n) + quarter;
  const vf z = r * r;
  vf s = fma_(fma_(vf_all(-1.9515295891e-4f), z, vf_all(8.3321608736e-3f)), z,
              vf_all(-1.6666654611e-1f));
  s = fma_(s * z, r, r);
  vf c = fma_(fma_(vf_all(2.443315711809948e-5f), z, vf_all(-1.388731625493765e-3f)), z,
              vf_all(4.166664568298827e-2f));
  c = fma_(c, z * z, fma_(vf_all(-0.5f), z, vf_all(1.0f)));
  const vf y = (q & 1) != 0 ? c : s;
  return (q & 2) != 0 ? -y : y;
}
inline vf sin_(vf x) { return sincos_(x, 0); }
inline vf cos_(vf x) { return sincos_(x, 1); }

// A uniform value takes the same path as a lane-wise one, so both give the same bits.
#define BUTTER_SCALAR(name) \
  inline float name(float x) { return name(vf_all(x))[0]; }
BUTTER_SCALAR(exp_)
BUTTER_SCALAR(log_)
BUTTER_SCALAR(tanh_)
BUTTER_SCALAR(sin_)
BUTTER_SCALAR(cos_)
BUTTER_SCALAR(rint_)
BUTTER_SCALAR(floor_)
BUTTER_SCALAR(ceil_)
#undef BUTTER_SCALAR

inline int32_t wrap_i8(int32_t x) { return int8_t(x); }
inline int32_t wrap_i16(int32_t x) { return int16_t(x); }
inline vi wrap_i8(vi x) { return (x << 24) >> 24; }
inline vi wrap_i16(vi x) { return (x << 16) >> 16; }

// -- half types --------------------------------------------------------------------------------

inline float to_float(f16 h) {
#if defined(__F16C__)
  return _cvtsh_ss(h.bits);
#else
  const uint32_t s = uint32_t(h.bits & 0x8000) << 16, e = h.bits >> 10 & 31, m = h.bits & 1023;
  if (e == 31) return bits<float>(s | 0x7f800000u | m << 13);
  if (e == 0) {  // subnormal: m * 2^-24
    const float x = float(m) * 5.9604644775390625e-8f;
    return s ? -x : x;
  }
  return bits<float>(s | (e + 112) << 23 | m << 13);
#endif
}
inline f16 to_f16(float x) {
#if defined(__F16C__)
  return {uint16_t(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT))};
#else
  const uint32_t u = bits<uint32_t>(x), s = u >> 16 & 0x8000;
  const uint32_t a = u & 0x7fffffff;
  if (a > 0x7f800000) return {uint16_t(s | 0x7e00)};
  if (a >= 0x47800000) return {uint16_t(s | 0x7c00)};
  if (a < 0x38800000) {  // subnormal result: let the float adder round at 2^-24
    const float r = bits<float>(a) + 0.5f;
    return {uint16_t(s | (bits<uint32_t>(r) - 0x3f000000u))};
  }
  const uint32_t odd = a >> 13 & 1;
  return {uint16_t(s | ((a - 0x38000000u + 0xfff + odd) >> 13))};
#endif
}
inline float to_float(bf16 h) { return bits<float>(uint32_t(h.bits) << 16); }
inline bf16 to_bf16(float x) {
  const uint32_t u = bits<uint32_t>(x);
  if ((u & 0x7fffffff) > 0x7f800000) return {uint16_t(u >> 16 | 64)};
  return {uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16)};
}
inline float round_f16(float x) { return to_float(to_f16(x)); }
inline float round_bf16(float x) { return to_float(to_bf16(x)); }
inline vf round_f16(vf x) {
#if defined(__AVX512F__)
  return (vf)_mm512_cvtph_ps(_mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
  return (vf)_mm256_cvtph_ps(_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT));
#else
  for (int i = 0; i < W; ++i) x[i] = round_f16(x[i]);
  return x;
#endif
}
inline vu bf16_bits(vf x) {
  const vu u = (vu)x;
  return x != x ? (u >> 16 | 64u) : (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
}
inline vf round_bf16(vf x) { return (vf)(bf16_bits(x) << 16); }

// -- memory ------------------------------------------------------------------------------------

inline float load1(const float* p) { return *p; }
inline float load1(const f16* p) { return to_float(*p); }
inline float load1(const bf16* p) { return to_float(*p); }
inline int32_t load1(const int32_t* p) { return *p; }
inline uint32_t load1(const uint32_t* p) { return *p; }
inline int32_t load1(const int16_t* p) { return *p; }
inline uint32_t load1(const uint16_t* p) { return *p; }
inline int32_t load1(const int8_t* p) { return *p; }
inline uint32_t load1(const uint8_t* p) { return *p; }
inline void store1(f16* p, float x) { *p = to_f16(x); }
inline void store1(bf16* p, float x) { *p = to_bf16(x); }
template <typename S, typename X>
inline void store1(S* p, X x) {
  *p = S(x);
}

template <typename S>
struct lanes_of {
  using type = vf;
};
template <>
struct lanes_of<int32_t> {
  using type = vi;
};
template <>
struct lanes_of<int16_t> {
  using type = vi;
};
template <>
struct lanes_of<int8_t> {
  using type = vi;
};
template <>
struct lanes_of<uint32_t> {
  using type = vu;
};
template <>
struct lanes_of<uint16_t> {
  using type = vu;
};
template <>
struct lanes_of<uint8_t> {
  using type = vu;
};
template <typename S>
using vec = typename lanes_of<S>::type;

// Any type, lane by lane; the overloads below replace the cases that matter. Out of line: expanded
// in place they would dominate the size and the compile time of every kernel.
#define BUTTER_SLOW [[gnu::noinline]] static
template <typename S>
BUTTER_SLOW vec<S> load(const S* p) {
  vec<S> v = {};
  for (int i = 0; i < W; ++i) v[i] = load1(p + i);
  return v;
}
template <typename S>
BUTTER_SLOW vec<S> load(const S* p, vm m) {
  vec<S> v = {};
  for (int i = 0; i < W; ++i)
    if (m[i]) v[i] = load1(p + i);
  return v;
}
template <typename S>
BUTTER_SLOW vec<S> gather(const S* p, vu at) {
  vec<S> v = {};
  for (int i = 0; i < W; ++i) v[i] = load1(p + at[i]);
  return v;
}
template <typename S>
BUTTER_SLOW vec<S> gather(const S* p, vu at, vm m) {
  vec<S> v = {};
  for (int i = 0; i < W; ++i)
    if (m[i]) v[i] = load1(p + at[i]);
  return v;
}
template <typename S, typename V>
BUTTER_SLOW void store(S* p, V v) {
  for (int i = 0; i < W; ++i) store1(p + i, v[i]);
}
template <typename S, typename V>
BUTTER_SLOW void store(S* p, V v, vm m) {
  for (int i = 0; i < W; ++i)
    if (m[i]) store1(p + i, v[i]);
}
template <typename S, typename V>
BUTTER_SLOW void scatter(S* p, vu at, V v) {
  for (int i = 0; i < W; ++i) store1(p + at[i], v[i]);
}
template <typename S, typename V>
BUTTER_SLOW void scatter(S* p, vu at, V v, vm m) {
  for (int i = 0; i < W; ++i)
    if (m[i]) store1(p + at[i], v[i]);
}

template <typename V, typename S>
inline V copy_in(const S* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline vf load(const float* p) { return copy_in<vf>(p); }
inline vi load(const int32_t* p) { return copy_in<vi>(p); }
inline vu load(const uint32_t* p) { return copy_in<vu>(p); }
inline void store(float* p, vf v) { std::memcpy(p, &v, sizeof v); }
inline void store(int32_t* p, vi v) { std::memcpy(p, &v, sizeof v); }
inline void store(uint32_t* p, vu v) { std::memcpy(p, &v, sizeof v); }

#if defined(__AVX512F__)
inline vf load(const f16* p) { return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p)); }
inline vf load(const bf16* p) {
  return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)), 16);
}
inline vi load(const int8_t* p) {
  return (vi)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p));
}
inline vu load(const uint8_t* p) {
  return (vu)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p));
}
inline vu load(const uint16_t* p) {
  return (vu)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p));
}
inline void store(f16* p, vf v) {
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT));
}
inline void store(bf16* p, vf v) {
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtepi32_epi16((__m512i)bf16_bits(v)));
}
inline void store(int8_t* p, vi v) {
  _mm_storeu_si128((__m128i*)p, _mm512_cvtepi32_epi8((__m512i)v));
}
inline void store(uint8_t* p, vu v) {
  _mm_storeu_si128((__m128i*)p, _mm512_cvtepi32_epi8((__m512i)v));
}
inline __mmask16 bits16(vm m) { return _mm512_movepi32_mask((__m512i)m); }
inline vf load(const float* p, vm m) { return (vf)_mm512_maskz_loadu_ps(bits16(m), p); }
inline void store(float* p, vf v, vm m) { _mm512_mask_storeu_ps(p, bits16(m), (__m512)v); }
inline vf gather(const float* p, vu at) { return (vf)_mm512_i32gather_ps((__m512i)at, p, 4); }
#elif defined(__AVX2__)
inline vf load(const f16* p) { return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p)); }
inline vf load(const bf16* p) {
  return (vf)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)), 16);
}
inline vi load(const int8_t* p) {
  return (vi)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p));
}
inline vu load(const uint8_t* p) {
  return (vu)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p));
}
inline vu load(const uint16_t* p) {
  return (vu)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p));
}
inline void store(f16* p, vf v) {
  _mm_storeu_si128((__m128i*)p, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
}
inline void store(bf16* p, vf v) {
  const __m256i u = (__m256i)bf16_bits(v);
  _mm_storeu_si128((__m128i*)p,
                   _mm_packus_epi32(_mm256_castsi256_si128(u), _mm256_extracti128_si256(u, 1)));
}
inline void store(int8_t* p, vi v) {
  // The values fit a byte already, so the saturating packs keep them.
  const __m256i u = (__m256i)v;
  const __m128i h = _mm_packs_epi32(_mm256_castsi256_si128(u), _mm256_extracti128_si256(u, 1));
  _mm_storel_epi64((__m128i*)p, _mm_packs_epi16(h, h));
}
inline vf load(const float* p, vm m) { return (vf)_mm256_maskload_ps(p, (__m256i)m); }
inline void store(float* p, vf v, vm m) { _mm256_maskstore_ps(p, (__m256i)m, (__m256)v); }
inline vf gather(const float* p, vu at) { return (vf)_mm256_i32gather_ps(p, (__m256i)at, 4); }
#elif defined(__aarch64__)
inline vf load(const f16* p) { return (vf)vcvt_f32_f16(vld1_f16((const __fp16*)p)); }
inline vf load(const bf16* p) { return (vf)vshll_n_u16(vld1_u16((const uint16_t*)p), 16); }
inline void store(f16* p, vf v) { vst1_f16((__fp16*)p, vcvt_f16_f32((float32x4_t)v)); }
#endif

}  // namespace butter::cpu::BUTTER_ISA
