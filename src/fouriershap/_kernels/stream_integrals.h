// The integrals of a twig, for every set of slots that a row can pass: a transform per point of the integral.
#pragma once
#include "stream_points.h"
#include "transpose.h"

namespace fouriershap {
namespace FS_LEVEL {
namespace {

// R bits from `bit` >= 3 on: y[P] += t * y[P without the bit], the factor on the side of P.
template <int R, class T>
inline void butterflies(T* y, int64_t size, int bit, typename Lanes<T>::type t) {
  using V = typename Lanes<T>::type;
  constexpr int N = 1 << R;
  const int64_t step = 1LL << bit;
  for (int64_t base = 0; base < size; base += step << R)
    for (int64_t offset = 0; offset < step; offset += kLanes) {
      T* at = y + base + offset;
      V v[N];
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i) v[i] = load<V>(at + i * step);
#pragma GCC unroll 3
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
        for (int i = 0; i < N; ++i)
          if (i >> r & 1) v[i] = t * v[i] + v[i ^ (1 << r)];
#pragma GCC unroll 8
      for (int i = 1; i < N; ++i) store(at + i * step, v[i]);
    }
}

template <class T>
inline void three_bits(typename Lanes<T>::type* v, typename Lanes<T>::type t) {
#pragma GCC unroll 3
  for (int r = 0; r < 3; ++r)
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i)
      if (i >> r & 1) v[i] = t * v[i] + v[i ^ (1 << r)];
}

// The sum of `n_sources` arrays, each times its factor, transformed over the first six bits.
template <class T, int FIXED>
inline void first_six_bits(const T* const* sources, const T* factors, int n_sources, T* y, int64_t size,
                           typename Lanes<T>::type t) {
  using V = typename Lanes<T>::type;
  const int n = FIXED ? FIXED : n_sources;
  for (int64_t offset = 0; offset < size; offset += 64) {
    V v[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) v[i] = factors[0] * load<V>(sources[0] + offset + 8 * i);
    for (int s = 1; s < n; ++s)
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) v[i] += factors[s] * load<V>(sources[s] + offset + 8 * i);
    three_bits<T>(v, t);
    transpose8(v);
    three_bits<T>(v, t);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) store(y + offset + 8 * i, v[i]);
  }
}

template <class T>
inline void remaining_bits(T* y, int n_bits, typename Lanes<T>::type t) {
  constexpr int kBlock = 12;  // bits of what stays in the nearest cache
  const int64_t size = 1LL << n_bits, block = 1LL << kBlock;
  int bit = kFirstBits;
  if (n_bits > kBlock) {
    for (int64_t offset = 0; offset < size; offset += block) {
      butterflies<3>(y + offset, block, 6, t);
      butterflies<3>(y + offset, block, 9, t);
    }
    bit = kBlock;
  }
  for (; bit + 3 <= n_bits; bit += 3) butterflies<3>(y, size, bit, t);
  if (n_bits - bit == 2) butterflies<2>(y, size, bit, t);
  if (n_bits - bit == 1) butterflies<1>(y, size, bit, t);
}

// How much of the background is in a state of the twig, by the slots it fails; `n_failed` slots more are
// failed by all of it.
template <class T>
struct Source {
  const T* shares;
  int state, n_failed;
};

// What the values of a row are read from, by state and passed slots P (z slots are failed):
//   i in P:   gain[P] - without[P minus i]        i not in P: lost[P]
// and `own`, where it cannot be had from the sum of all values.
template <class T>
struct Integrals {
  T *gain, *without, *lost, *own;
};

template <class T>
class Integrator {
 public:
  bool allocate(const StreamIndex& the_index, int64_t size) {
    index = &the_index;
    return y.reserve(2 * size) && known.allocate() && (index->efficient || other.reserve(size));
  }

  // `nothing_failed`: share of the background by state that fails no slot at all; it is in no source.
  void integrate(const Domain& domain, int n_states, const double* value, const Source<T>* sources,
                 int n_sources, const double* nothing_failed, const Integrals<T>& out) {
    for (int state = 0; state < n_states; ++state) {
      const int64_t at = static_cast<int64_t>(state) << table_bits(domain.n_slots);
      one_state(domain, state, n_states, value, sources, n_sources, nothing_failed,
                {out.gain + at, out.without + at, out.lost + at, out.own ? out.own + at : nullptr});
    }
  }

 private:
  using V = typename Lanes<T>::type;
  static constexpr int kMostSources = 3 * (kMostSlots + 1);

  // What a hybrid brings where the own player is the row's with probability t.
  static double coefficient(const double* value, int row, int other, double t) {
    if (row == other) return row == 2 ? 0.0 : value[row];
    return (row == 2 ? 0.0 : value[row] * t) + (other == 2 ? 0.0 : value[other] * (1 - t));
  }

  void transform(const Domain& domain, const Source<T>* sources, int n_sources, const double* by_state,
                 double t, T* y_out) {
    const T* arrays[kMostSources];
    T factors[kMostSources];
    for (int s = 0; s < n_sources; ++s) {
      double factor = by_state[sources[s].state];
      for (int i = 0; i < sources[s].n_failed; ++i) factor *= t;
      arrays[s] = sources[s].shares;
      factors[s] = static_cast<T>(factor);
    }
    const int n_bits = table_bits(domain.n_slots);
    const int64_t size = 1LL << n_bits;
    const V tv = V{} + static_cast<T>(t);
    if (n_sources == 2)
      first_six_bits<T, 2>(arrays, factors, 2, y_out, size, tv);
    else if (n_sources == 3)
      first_six_bits<T, 3>(arrays, factors, 3, y_out, size, tv);
    else
      first_six_bits<T, 0>(arrays, factors, n_sources, y_out, size, tv);
    remaining_bits(y_out, n_bits, tv);
  }

  void one_state(const Domain& domain, int state, int n_states, const double* value, const Source<T>* sources,
                 int n_sources, const double* nothing_failed, const Integrals<T>& out) {
    const int64_t size = 1LL << table_bits(domain.n_slots), n_vectors = size / kLanes;
    const PointsOf<T> points = known.of(*index, domain);
    const int most_failed = domain.n_failed + domain.n_slots;
    double lost_alone[kMostSlots + 2] = {};      // by z: what the background loses that fails nothing
    for (int k = 0; k < points.count; k += 2) {  // two points share a pass over the integrals
      const int n_here = points.count - k < 2 ? points.count - k : 2;
      for (int i = 0; i < n_here; ++i) {
        const Point<T>& point = points.first[k + i];
        double by_state[3], alone = 0.0;
        for (int b = 0; b < 3; ++b) by_state[b] = coefficient(value, state, b, point.t);
        for (int b = 0; b < n_states; ++b) alone += by_state[b] * nothing_failed[b];
        for (int z = 1; z <= most_failed; ++z) lost_alone[z] += point.share[z] * alone;
        transform(domain, sources, n_sources, by_state, point.t, y + i * size);
      }
      add_points(points.first + k, n_here, k > 0, n_vectors, size, out);
    }
    alignas(64) T alone[kMostSlots][kLanes];
    for (int high = 0; high <= table_bits(domain.n_slots) - 3; ++high)
      for (int lane = 0; lane < kLanes; ++lane) {
        const int z = domain.failed(high, lane);
        alone[high][lane] = static_cast<T>(lost_alone[z]);
      }
    for (int64_t i = 0; i < n_vectors; ++i) {
      const V all = load<V>(out.without + 8 * i), loss = load<V>(out.lost + 8 * i);
      store(out.gain + 8 * i, all - loss);
      store(out.lost + 8 * i, -(loss + load<V>(alone[__builtin_popcountll(i)])));
    }
    if (out.own) own_player(domain, state, n_states, value, sources, n_sources, nothing_failed, out.own);
  }

  void add_points(const Point<T>* here, int n_here, bool begun, int64_t n_vectors, int64_t size,
                  const Integrals<T>& out) {
    const T *y0 = y, *y1 = y + size;
    for (int64_t i = 0; i < n_vectors; ++i) {
      const int high = __builtin_popcountll(i);
      const V u = load<V>(y0 + 8 * i);
      V gain = u * load<V>(here[0].gain[high]), loss = u * load<V>(here[0].loss[high]);
      if (n_here == 2) {
        const V v = load<V>(y1 + 8 * i);
        gain += v * load<V>(here[1].gain[high]);
        loss += v * load<V>(here[1].loss[high]);
      }
      if (begun) {
        gain += load<V>(out.without + 8 * i);
        loss += load<V>(out.lost + 8 * i);
      }
      store(out.without + 8 * i, gain);
      store(out.lost + 8 * i, loss);
    }
  }

  // The own player of a twig by itself: what its state brings over the background's, where the others pass.
  void own_player(const Domain& domain, int state, int n_states, const double* value,
                  const Source<T>* sources, int n_sources, const double* nothing_failed, T* own) {
    const int64_t size = 1LL << table_bits(domain.n_slots);
    const PointsOf<T> points = known.of(*index, domain);
    const double mine = state == 2 ? 0.0 : value[state];
    double by_state[3], alone = 0.0;
    for (int b = 0; b < 3; ++b) by_state[b] = mine - (b == 2 ? 0.0 : value[b]);
    for (int b = 0; b < n_states; ++b) alone += by_state[b] * nothing_failed[b];
    for (int64_t i = 0; i < size; ++i) own[i] = 0;
    for (int k = 0; k < points.count; ++k) {
      const Point<T>& point = points.first[k];
      transform(domain, sources, n_sources, by_state, point.t, other);
      for (int64_t i = 0; i < size; ++i)
        own[i] +=
            static_cast<T>(point.share[domain.failed(__builtin_popcountll(i), 0) + 1] * (other[i] + alone));
    }
  }

  const StreamIndex* index = nullptr;
  Room<T> y, other;
  KnownPoints<T> known;
};

}  // namespace
}  // namespace FS_LEVEL
}  // namespace fouriershap
