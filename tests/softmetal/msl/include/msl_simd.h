// Barriers and simdgroup operations: every lane puts its value into a slot, waits for the others
// and reads theirs.
#pragma once

#include "msl_types.h"

// Convergent: clang must not copy the call into the branches around it, or lanes would seem to
// stand at different places.
#define MSL_CALL __attribute__((noinline, convergent))
#define MSL_INLINE   \
  template <class T> \
  __attribute__((always_inline, convergent)) inline
#define MSL_SITE __builtin_return_address(0)

namespace msl {

constexpr int kSlotBytes = 32;

template <class T>
MSL_CALL T* exchange(T x) {
  static_assert(!std::is_same_v<T, bool>, "simdgroup operations take numbers");
  static_assert(sizeof(T) <= kSlotBytes, "a simdgroup operation takes at most 32 bytes");
  char* slots = msl_slots(msl_next_phase());
  __builtin_memcpy(slots + kSlotBytes * msl_lane(), &x, sizeof(T));
  msl_sync(kMslSimd, MSL_SITE);
  return (T*)slots;
}

template <class T>
inline const T& at(T* slots, unsigned lane) {
  return *(T*)((char*)slots + kSlotBytes * lane);
}

template <class T, class F>
__attribute__((always_inline, convergent)) inline T reduce(T x, F f) {
  T* slots = exchange(x);
  T total = at(slots, 0);
  for (unsigned i = 1, n = msl_active(); i < n; ++i) total = f(total, at(slots, i));
  return total;
}

}  // namespace msl

namespace metal {

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
constexpr mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(int(a) | int(b)); }

MSL_CALL inline void threadgroup_barrier(mem_flags) { msl_sync(kMslThreadgroup, MSL_SITE); }
MSL_CALL inline void simdgroup_barrier(mem_flags) { msl_sync(kMslSimdBarrier, MSL_SITE); }

#define MSL_REDUCTION(name, expression)                              \
  MSL_INLINE T name(T x) {                                           \
    return msl::reduce(x, [](T a, T b) -> T { return expression; }); \
  }
MSL_REDUCTION(simd_sum, a + b)
MSL_REDUCTION(simd_product, a* b)
MSL_REDUCTION(simd_max, a > b ? a : b)
MSL_REDUCTION(simd_min, a < b ? a : b)
MSL_REDUCTION(simd_or, a | b)
MSL_REDUCTION(simd_and, a& b)
MSL_REDUCTION(simd_xor, a ^ b)

MSL_INLINE T simd_shuffle(T x, ushort lane) {
  T* slots = msl::exchange(x);
  return msl::at(slots, lane & 31);
}
MSL_INLINE T simd_broadcast(T x, ushort lane) { return simd_shuffle(x, lane); }
MSL_INLINE T simd_broadcast_first(T x) { return simd_shuffle(x, 0); }
MSL_INLINE T simd_shuffle_xor(T x, ushort mask) { return simd_shuffle(x, msl_lane() ^ mask); }
// Lanes that would read past the end are undefined on a Mac; here they keep their own value.
MSL_INLINE T simd_shuffle_down(T x, ushort by) {
  const unsigned lane = msl_lane();
  return simd_shuffle(x, lane + by > 31 ? lane : lane + by);
}
MSL_INLINE T simd_shuffle_up(T x, ushort by) {
  const unsigned lane = msl_lane();
  return simd_shuffle(x, lane < by ? lane : lane - by);
}
MSL_INLINE T simd_prefix_exclusive_sum(T x) {
  T* slots = msl::exchange(x);
  T total = 0;
  for (unsigned i = 0; i < msl_lane(); ++i) total += msl::at(slots, i);
  return total;
}
MSL_INLINE T simd_prefix_inclusive_sum(T x) { return simd_prefix_exclusive_sum(x) + x; }

__attribute__((always_inline, convergent)) inline bool simd_any(bool x) { return simd_or<uint>(x); }
__attribute__((always_inline, convergent)) inline bool simd_all(bool x) {
  return simd_and<uint>(x);
}
inline bool simd_is_first() { return msl_lane() == 0; }

}  // namespace metal
