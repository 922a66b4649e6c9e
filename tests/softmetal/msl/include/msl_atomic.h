// Atomics on device and threadgroup memory, relaxed order only, as in MSL.
#pragma once

#include "msl_types.h"

namespace metal {

enum memory_order { memory_order_relaxed };

template <class T>
struct atomic {
  T value;
};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<float> atomic_float;

#ifdef MSL_ADDRSPACE

#define MSL_ATOMIC(space)                                                  \
  template <class T>                                                       \
  T atomic_load_explicit(const volatile space atomic<T>*, memory_order);   \
  template <class T, class U>                                              \
  void atomic_store_explicit(volatile space atomic<T>*, U, memory_order);  \
  template <class T, class U>                                              \
  T atomic_fetch_add_explicit(volatile space atomic<T>*, U, memory_order); \
  template <class T, class U>                                              \
  T atomic_fetch_max_explicit(volatile space atomic<T>*, U, memory_order); \
  template <class T, class U>                                              \
  T atomic_fetch_or_explicit(volatile space atomic<T>*, U, memory_order);
MSL_ATOMIC(device)
MSL_ATOMIC(threadgroup)

#else

template <class T>
inline T atomic_load_explicit(const volatile atomic<T>* a, memory_order) {
  T value;
  __atomic_load(&a->value, &value, __ATOMIC_RELAXED);
  return value;
}
template <class T, class U>
inline void atomic_store_explicit(volatile atomic<T>* a, U x, memory_order) {
  T value = x;
  __atomic_store(&a->value, &value, __ATOMIC_RELAXED);
}

#define MSL_FETCH(name, expression)                                                         \
  template <class T, class U>                                                               \
  inline T atomic_fetch_##name##_explicit(volatile atomic<T>* a, U operand, memory_order) { \
    T old, next;                                                                            \
    const T x = T(operand);                                                                 \
    __atomic_load(&a->value, &old, __ATOMIC_RELAXED);                                       \
    do {                                                                                    \
      next = expression;                                                                    \
    } while (!__atomic_compare_exchange(&a->value, &old, &next, false, __ATOMIC_RELAXED,    \
                                        __ATOMIC_RELAXED));                                 \
    return old;                                                                             \
  }
MSL_FETCH(add, old + x)
MSL_FETCH(max, old > x ? old : x)
MSL_FETCH(min, old < x ? old : x)
MSL_FETCH(or, old | x)

#endif

}  // namespace metal
