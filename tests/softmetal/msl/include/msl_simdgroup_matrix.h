// simdgroup_matrix: each lane holds the two elements that it holds on Apple's GPUs.
#pragma once

#include "msl_simd.h"

namespace metal {

template <class T, int R, int C>
struct simdgroup_matrix {
  static_assert(R == 8 && C == 8, "only 8x8 matrices exist");
  T e[2];

  simdgroup_matrix() = default;
  explicit simdgroup_matrix(T x) : e{x, x} {}
  vec<T, 2>& thread_elements() { return *(vec<T, 2>*)e; }

  static void place(unsigned lane, unsigned& row, unsigned& column) {
    const unsigned quad = lane / 4;
    row = (quad & 4) + (lane / 2) % 4;
    column = (quad & 2) * 2 + (lane % 2) * 2;
  }
  static unsigned holder(unsigned row, unsigned column) {
    return (row & 4) << 2 | (column & 4) << 1 | (row & 3) << 1 | (column & 2) >> 1;
  }
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <class T, int R, int C>
inline simdgroup_matrix<T, R, C> make_filled_simdgroup_matrix(T x) {
  return simdgroup_matrix<T, R, C>(x);
}

template <class T, class P>
inline void simdgroup_load(simdgroup_matrix<T, 8, 8>& m, const P* p, ulong stride = 8,
                           ulong2 origin = ulong2(0), bool transpose = false) {
  unsigned row, column;
  m.place(msl_lane(), row, column);
  for (int i = 0; i < 2; ++i) {
    m.e[i] = transpose ? p[(column + i + origin.y) * stride + row + origin.x]
                       : p[(row + origin.y) * stride + column + i + origin.x];
  }
}

template <class T, class P>
inline void simdgroup_store(const simdgroup_matrix<T, 8, 8>& m, P* p, ulong stride = 8,
                            ulong2 origin = ulong2(0), bool transpose = false) {
  unsigned row, column;
  m.place(msl_lane(), row, column);
  for (int i = 0; i < 2; ++i) {
    P& at = transpose ? p[(column + i + origin.y) * stride + row + origin.x]
                      : p[(row + origin.y) * stride + column + i + origin.x];
    at = m.e[i];
  }
}

template <class D, class A, class B, class C>
__attribute__((always_inline, convergent)) inline void simdgroup_multiply_accumulate(
    simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a,
    const simdgroup_matrix<B, 8, 8>& b, const simdgroup_matrix<C, 8, 8>& c) {
  struct Pair {
    A a[2];
    B b[2];
  };
  Pair own = {{a.e[0], a.e[1]}, {b.e[0], b.e[1]}};
  Pair* slots = msl::exchange(own);
  unsigned row, column;
  d.place(msl_lane(), row, column);
  float total[2] = {(float)c.e[0], (float)c.e[1]};
  for (unsigned k = 0; k < 8; ++k) {
    const float left = (float)msl::at(slots, d.holder(row, k)).a[k & 1];
    const Pair& right = msl::at(slots, d.holder(k, column));
    total[0] += left * (float)right.b[0];
    total[1] += left * (float)right.b[1];
  }
  d.e[0] = (D)total[0];
  d.e[1] = (D)total[1];
}

template <class D, class A, class B>
__attribute__((always_inline, convergent)) inline void simdgroup_multiply(
    simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a,
    const simdgroup_matrix<B, 8, 8>& b) {
  const simdgroup_matrix<D, 8, 8> zero(D(0));
  simdgroup_multiply_accumulate(d, a, b, zero);
}

}  // namespace metal
