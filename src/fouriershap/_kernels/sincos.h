// Sine and cosine of vectors: by quarter turns to |r| <= pi/4, then Taylor's series, which ends below
// rounding.
#pragma once
#include "simd.h"

namespace fouriershap {
namespace FS_LEVEL {

// pi / 2 in three parts: the first two have so few bits that their products with whole numbers are exact.
// `round` pushes the digits after the point out of a number, whose last bits then count quarter turns.
template <class T>
struct Turn;

template <>
struct Turn<float> {
  typedef int32_t whole;
  static constexpr float round = 12582912.0f;
  static constexpr float parts[3] = {0x1.92p+0f, 0x1.fb4p-12f, 0x1.4442d2p-24f};
  static constexpr int terms = 5;
};

template <>
struct Turn<double> {
  typedef int64_t whole;
  static constexpr double round = 6755399441055744.0;
  static constexpr double parts[3] = {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2e037073p-69};
  static constexpr int terms = 9;
};

template <class T>
static inline void sincos(typename Vec<T>::type angle, typename Vec<T>::type* sine,
                          typename Vec<T>::type* cosine) {
  typedef typename Vec<T>::type V;
  typedef typename Vec<typename Turn<T>::whole>::type I;
  constexpr T two_by_pi = static_cast<T>(0.63661977236758134308);
  const V shifted = angle * two_by_pi + Turn<T>::round;
  const I quarter = (I)shifted;
  const V turns = shifted - Turn<T>::round;
  V r = angle - turns * Turn<T>::parts[0];
  r -= turns * Turn<T>::parts[1];
  r -= turns * Turn<T>::parts[2];
  const V square = r * r;
  V s = V{} + T(1), c = V{} + T(1);
  for (int k = Turn<T>::terms; k > 0; --k) {
    s = T(1) - square * s * (T(1) / T((2 * k) * (2 * k + 1)));
    c = T(1) - square * c * (T(1) / T((2 * k - 1) * (2 * k)));
  }
  s *= r;
  constexpr int sign = 8 * sizeof(T) - 2;  // takes bit 1 to the place of the sign
  const I odd = -(quarter & 1);
  const I first = ((I)s & ~odd) | ((I)c & odd), second = ((I)c & ~odd) | ((I)s & odd);
  *sine = (V)(first ^ ((quarter & 2) << sign));
  *cosine = (V)(second ^ (((quarter + 1) & 2) << sign));
}

}  // namespace FS_LEVEL
}  // namespace fouriershap
