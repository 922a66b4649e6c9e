// Dot products of packed values, for generated kernels: the best instructions of each set.
#pragma once

#include "cpu/simd.h"

namespace butter::cpu::BUTTER_ISA {

// -- bytes -------------------------------------------------------------------------------------

// An array as an expression; GCC takes no address of a temporary array.
template <typename T, int N>
struct Words {
  T v[N];
};

// Per lane: the sum over N words of four products, unsigned bytes of c below 2^BITS times signed
// bytes of x.
template <int BITS, int N>
inline uint32_t dot_u8i8(const uint32_t* c, const uint32_t* x) {
  int32_t sum = 0;
  for (int j = 0; j < N; ++j)
    for (int s = 0; s < 32; s += 8) sum += int32_t(c[j] >> s & 255) * int8_t(x[j] >> s & 255);
  return uint32_t(sum);
}

// The loops are unrolled whole, so that the words stay in registers.
#if defined(__AVX512VNNI__)
template <int BITS, int N>
inline vi dot_words(const vu* c, const vu* x) {
  __m512i a = _mm512_setzero_si512(), b = a;  // two chains: dpbusd has a latency of four cycles
#pragma GCC unroll 32
  for (int j = 0; j < N; j += 2) a = _mm512_dpbusd_epi32(a, (__m512i)c[j], (__m512i)x[j]);
#pragma GCC unroll 32
  for (int j = 1; j < N; j += 2) b = _mm512_dpbusd_epi32(b, (__m512i)c[j], (__m512i)x[j]);
  return (vi)(_mm512_add_epi32(a, b));
}
#elif defined(__AVX2__)
template <int BITS, int N>
inline vi dot_words(const vu* c, const vu* x) {
  const __m256i ones = _mm256_set1_epi16(1);
  if constexpr (BITS > 6) {  // even one pair could saturate: nibble by nibble
    vu low[N], high[N];
#pragma GCC unroll 32
    for (int j = 0; j < N; ++j) low[j] = c[j] & 0x0f0f0f0fu, high[j] = c[j] >> 4 & 0x0f0f0f0fu;
    return dot_words<4, N>(low, x) + (dot_words<4, N>(high, x) << 4);
  } else {
    // A pair sums to at most 2 * (2^BITS - 1) * 128; as many pairs as stay below 2^15 share one
    // 16-bit sum.
    constexpr int kChain = 32767 / (2 * ((1 << BITS) - 1) * 128);
    __m256i total = _mm256_setzero_si256(), sum = total;
#pragma GCC unroll 32
    for (int j = 0; j < N; ++j) {
      const __m256i pair = _mm256_maddubs_epi16((__m256i)c[j], (__m256i)x[j]);
      sum = j % kChain == 0 ? pair : _mm256_add_epi16(sum, pair);
      if (j % kChain == kChain - 1 || j == N - 1)
        total = _mm256_add_epi32(total, _mm256_madd_epi16(sum, ones));
    }
    return (vi)total;
  }
}
#elif defined(__ARM_FEATURE_DOTPROD)
template <int BITS, int N>
inline vi dot_words(const vu* c, const vu* x) {
  int32x4_t sum = vdupq_n_s32(0);
  for (int j = 0; j < N; ++j) {
    const int8x16_t y = (int8x16_t)x[j];
    if constexpr (BITS < 8) {
      sum = vdotq_s32(sum, (int8x16_t)c[j], y);
    } else {  // codes above 127 are not signed bytes: c = (c - 128) + 128
      sum = vdotq_s32(sum, (int8x16_t)(c[j] ^ 0x80808080u), y);
      sum = vdotq_s32(sum, vdupq_n_s8(64), y);
      sum = vdotq_s32(sum, vdupq_n_s8(64), y);
    }
  }
  return (vi)sum;
}
#else
template <int BITS, int N>
inline vi dot_words(const vu* c, const vu* x) {
  vi sum = {};
  for (int j = 0; j < N; ++j)
    for (int s = 0; s < 32; s += 8) sum += (vi)(c[j] >> s & 255u) * ((vi)(x[j] << (24 - s)) >> 24);
  return sum;
}
#endif
template <int BITS, int N>
inline vi dot_u8i8(const vu* c, const vu* x) {
  return dot_words<BITS, N>(c, x);
}
template <int BITS, int N>
inline vi dot_u8i8(const vu* c, const uint32_t* x) {
  vu y[N];
#pragma GCC unroll 32
  for (int j = 0; j < N; ++j) y[j] = vu_all(x[j]);
  return dot_words<BITS, N>(c, y);
}

// -- pairs of bf16 -----------------------------------------------------------------------------

// acc plus the products of the low and of the high halves.
inline float dot_bf16(float acc, uint32_t a, uint32_t b) {
  acc = fma_(bits<float>(a << 16), bits<float>(b << 16), acc);
  return fma_(bits<float>(a & 0xffff0000u), bits<float>(b & 0xffff0000u), acc);
}
inline vf dot_bf16(vf acc, vu a, vu b) {
#if defined(__AVX512BF16__)
  return (vf)_mm512_dpbf16_ps((__m512)acc, (__m512bh)a, (__m512bh)b);
#else
  acc = fma_((vf)(a << 16), (vf)(b << 16), acc);
  return fma_((vf)(a & 0xffff0000u), (vf)(b & 0xffff0000u), acc);
#endif
}

}  // namespace butter::cpu::BUTTER_ISA
