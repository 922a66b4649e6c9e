// Arithmetic peak of one core, from registers only: f32 FMA, dot products of int8 and of bf16.
// usage: peak REPEATS, prints G operations/s of f32, int8 and bf16 for each repeat, 2 per
// multiply-add; 0 where there is no instruction
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

enum { kChains = 12, kRounds = 2000000 };  // more chains than latency times throughput

#if defined(__AVX512F__)
enum { kFloats = 16 };
#elif defined(__AVX__)
enum { kFloats = 8 };
#else
enum { kFloats = 4 };
#endif
typedef float Floats __attribute__((vector_size(4 * kFloats)));

// Time of this thread alone: blind to what else the machine does.
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Makes the compiler believe that x was changed.
#if defined(__x86_64__)
#define KEEP(x) __asm__ volatile("" : "+x"(x))
#else
#define KEEP(x) __asm__ volatile("" : "+w"(x))
#endif

static double f32_peak(void) {
  Floats sum[kChains] = {0}, a = {0}, b = {0};
  KEEP(b);
  const double start = now();
  for (int r = 0; r < kRounds; ++r) {
    for (int k = 0; k < kChains; ++k) {
      KEEP(a);  // or the product would be taken once only
      sum[k] += a * b;
    }
    for (int k = 0; k < kChains; ++k) KEEP(sum[k]);
  }
  return 2.0 * kFloats * kChains * kRounds / (now() - start) / 1e9;
}

#if defined(__AVX512VNNI__)
typedef __m512i Ints;
enum { kProducts = 64 };
static inline Ints dot(Ints sum, Ints a, Ints b) { return _mm512_dpbusd_epi32(sum, a, b); }
#elif defined(__AVX2__)
typedef __m256i Ints;
enum { kProducts = 32 };
static inline Ints dot(Ints sum, Ints a, Ints b) {
  return _mm256_add_epi16(sum, _mm256_maddubs_epi16(a, b));
}
#elif defined(__ARM_FEATURE_DOTPROD)
typedef int32x4_t Ints;
enum { kProducts = 16 };
static inline Ints dot(Ints sum, Ints a, Ints b) {
  return vdotq_s32(sum, vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b));
}
#else
enum { kProducts = 0 };
#endif

static double int8_peak(void) {
#if defined(__AVX2__) || defined(__ARM_FEATURE_DOTPROD)
  Ints sum[kChains] = {0}, a = {0}, b = {0};
  KEEP(b);
  const double start = now();
  for (int r = 0; r < kRounds; ++r) {
    for (int k = 0; k < kChains; ++k) {
      KEEP(a);
      sum[k] = dot(sum[k], a, b);
    }
    for (int k = 0; k < kChains; ++k) KEEP(sum[k]);
  }
  return 2.0 * kProducts * kChains * kRounds / (now() - start) / 1e9;
#else
  return kProducts;
#endif
}

static double bf16_peak(void) {
#if defined(__AVX512BF16__)
  __m512 sum[kChains] = {0};
  __m512i a = {0}, b = {0};
  KEEP(b);
  const double start = now();
  for (int r = 0; r < kRounds; ++r) {
    for (int k = 0; k < kChains; ++k) {
      KEEP(a);
      sum[k] = _mm512_dpbf16_ps(sum[k], (__m512bh)a, (__m512bh)b);
    }
    for (int k = 0; k < kChains; ++k) KEEP(sum[k]);
  }
  return 2.0 * 32 * kChains * kRounds / (now() - start) / 1e9;
#else
  return 0;
#endif
}

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? atoi(argv[1]) : 3;
  for (int r = 0; r < repeats; ++r) {
    const double f32 = f32_peak(), int8 = int8_peak();
    printf("%.1f %.1f %.1f\n", f32, int8, bf16_peak());
  }
  return 0;
}
