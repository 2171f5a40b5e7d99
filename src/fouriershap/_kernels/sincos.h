// Sine and cosine of vectors: by quarter turns to |r| <= pi/4, then Taylor's series, which ends below
// rounding.
#pragma once
#include "simd.h"

namespace fouriershap {

// pi / 2 in three parts: the first two have so few bits that their products with integers are exact.
// `round` pushes the digits after the point out of a number, whose last bits then count quarter turns.
template <class T>
struct Turn;

template <>
struct Turn<float> {
  typedef int32_t whole;
  static constexpr float round = 12582912.0f;
  static constexpr float parts[3] = {0x1.92p+0f, 0x1.fb4p-12f, 0x1.4442d2p-24f};
  static constexpr int terms = 4;
};

template <>
struct Turn<double> {
  typedef int64_t whole;
  static constexpr double round = 6755399441055744.0;
  static constexpr double parts[3] = {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2e037073p-69};
  static constexpr int terms = 9;
};

// Taylor's coefficients of sin(r) / r and of cos(r), as polynomials of the square of r.
template <class T>
struct Series {
  T sine[Turn<T>::terms + 1], cosine[Turn<T>::terms + 1];
  constexpr Series() : sine{1}, cosine{1} {
    double factor = 1;
    for (int k = 1; k <= Turn<T>::terms; ++k) {
      factor /= -(2 * k - 1) * (2 * k);
      cosine[k] = static_cast<T>(factor);
      sine[k] = static_cast<T>(factor / (2 * k + 1));
    }
  }
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
  constexpr Series<T> series;
  V s = V{} + series.sine[Turn<T>::terms], c = V{} + series.cosine[Turn<T>::terms];
  for (int k = Turn<T>::terms; k-- > 0;) {
    s = s * square + series.sine[k];
    c = c * square + series.cosine[k];
  }
  s *= r;
  constexpr int sign = 8 * sizeof(T) - 2;  // takes bit 1 to the place of the sign
  const I odd = -(quarter & 1);
  const I first = ((I)s & ~odd) | ((I)c & odd), second = ((I)c & ~odd) | ((I)s & odd);
  *sine = (V)(first ^ ((quarter & 2) << sign));
  *cosine = (V)(second ^ (((quarter + 1) & 2) << sign));
}

}  // namespace fouriershap
