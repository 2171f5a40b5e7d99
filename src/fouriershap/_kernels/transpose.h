// Transposes L vectors of L lanes in registers, for L = 2, 4, 8.
#pragma once
#include "simd.h"

namespace fouriershap {

template <class V>
static inline void transpose2(V* v) {
  const V a = v[0], b = v[1];
  v[0] = __builtin_shufflevector(a, b, 0, 2);
  v[1] = __builtin_shufflevector(a, b, 1, 3);
}

template <class V>
static inline void transpose4(V* v) {
  const V a = __builtin_shufflevector(v[0], v[1], 0, 4, 2, 6),
          b = __builtin_shufflevector(v[0], v[1], 1, 5, 3, 7);
  const V c = __builtin_shufflevector(v[2], v[3], 0, 4, 2, 6),
          d = __builtin_shufflevector(v[2], v[3], 1, 5, 3, 7);
  v[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  v[1] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  v[2] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  v[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

template <class V>
static inline void transpose8(V* v) {
  V a[8], b[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    a[i] = __builtin_shufflevector(v[i], v[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    a[i + 1] = __builtin_shufflevector(v[i], v[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    b[i] = __builtin_shufflevector(a[i], a[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    b[i + 1] = __builtin_shufflevector(a[i + 1], a[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
    b[i + 2] = __builtin_shufflevector(a[i], a[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    b[i + 3] = __builtin_shufflevector(a[i + 1], a[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    v[i] = __builtin_shufflevector(b[i], b[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    v[i + 4] = __builtin_shufflevector(b[i], b[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

static inline void transpose(Vec<double>::type* v) {
#if FS_VECTOR_BYTES == 32
  transpose4(v);
#else
  transpose2(v);
#endif
}

static inline void transpose(Vec<float>::type* v) {
#if FS_VECTOR_BYTES == 32
  transpose8(v);
#else
  transpose4(v);
#endif
}

}  // namespace fouriershap
