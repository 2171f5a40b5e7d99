// Vectors of the width that the instruction set at hand has: 32 bytes with AVX, else 16 (SSE2, NEON).
#pragma once
#include <cstdint>
#include <cstring>

#if defined(__AVX__)
#define FS_VECTOR_BYTES 32
#else
#define FS_VECTOR_BYTES 16
#endif

namespace fouriershap {

inline constexpr int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

template <class T>
struct Vec {
  typedef T type __attribute__((vector_size(FS_VECTOR_BYTES)));
  static constexpr int lanes = FS_VECTOR_BYTES / sizeof(T);
};

template <class V, class T>
static inline V load(const T* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <class V, class T>
static inline void store(T* p, V v) {
  std::memcpy(p, &v, sizeof v);
}

}  // namespace fouriershap
