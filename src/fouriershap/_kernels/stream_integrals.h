// The integrals of a bottom subtree, for every set of slots that a row can pass: two transforms per point of
// the integral.
#pragma once
#include "stream_points.h"
#include "transpose.h"

namespace fouriershap {
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

// The sum of `n` arrays, each times its factor, transformed over the first six bits.
template <class T>
inline void first_six_bits(const T* const* arrays, const T* factors, int n, T* y, int64_t size,
                           typename Lanes<T>::type t) {
  using V = typename Lanes<T>::type;
  for (int64_t offset = 0; offset < size; offset += 64) {
    V v[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) v[i] = factors[0] * load<V>(arrays[0] + offset + 8 * i);
    for (int s = 1; s < n; ++s)
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) v[i] += factors[s] * load<V>(arrays[s] + offset + 8 * i);
    three_bits<T>(v, t);
    transpose8(v);
    three_bits<T>(v, t);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) store(y + offset + 8 * i, v[i]);
  }
}

// The bits from `bit` on, a multiple of 3.
template <class T>
inline void remaining_bits(T* y, int bit, int n_bits, typename Lanes<T>::type t) {
  constexpr int kBlock = 12;  // bits of a block that stays in the first-level cache
  const int64_t size = 1LL << n_bits, block = 1LL << kBlock;
  if (n_bits > kBlock) {
    for (int64_t offset = 0; offset < size; offset += block)
      for (int low = bit; low < kBlock; low += 3) butterflies<3>(y + offset, block, low, t);
    bit = kBlock;
  }
  for (; bit + 3 <= n_bits; bit += 3) butterflies<3>(y, size, bit, t);
  if (n_bits - bit == 2) butterflies<2>(y, size, bit, t);
  if (n_bits - bit == 1) butterflies<1>(y, size, bit, t);
}

// The background by the slots that it fails: its share, and the values of the leaves that it reaches in the
// bottom subtree. All of it fails `n_failed` more slots.
template <class T>
struct Source {
  const T *any, *worth;
  int n_failed;
};

// The same for background rows that fail no slot, which are in no source.
struct Unfailing {
  double any, worth;
};

// A source from a histogram (n_states, size) of the background, in a room (2, size). What fails no slot,
// neither here nor of the `n_failed` others, goes to `rest` instead.
template <class T>
inline Source<T> make_source(const double* histogram, int64_t size, int n_states, const double* value,
                             int n_failed, T* room, Unfailing& rest) {
  T *any = room, *worth = room + size;
  const double *left = histogram, *right = histogram + size, *nowhere = histogram + 2 * size;
  for (int64_t i = 0; i < size; ++i) {
    any[i] = static_cast<T>(left[i] + right[i]);
    worth[i] = static_cast<T>(value[0] * left[i] + value[1] * right[i]);
  }
  if (n_states == 3)
    for (int64_t i = 0; i < size; ++i) any[i] += static_cast<T>(nowhere[i]);
  if (n_failed == 0) {
    rest = {left[0] + right[0] + (n_states == 3 ? nowhere[0] : 0.0),
            value[0] * left[0] + value[1] * right[0]};
    any[0] = worth[0] = 0;
  }
  return {any, worth, n_failed};
}

// What the values of a row are read from, by state and passed slots P (z slots are failed):
//   i in P:   gain[P] - without[P minus i]        i not in P: lost[P]
// and `own`, where it cannot be had from the sum of all values.
template <class T>
struct Integrals {
  T *gain, *without, *lost, *own;

  Integrals from(int64_t at) const { return {gain + at, without + at, lost + at, own ? own + at : nullptr}; }
};

// With probability t the own player is the row's, and then the leaf is that of the row's state, else it is
// the background's: a row whose leaf is worth v brings (1 - t) worth + t v any. So two transforms a point, of
// `any` and of `worth`, serve the rows of every state.
template <class T>
class Integrator {
 public:
  void allocate(const StreamIndex& the_index, int64_t size) {
    index = &the_index;
    y.reserve(2 * kTogether * size);
    sums.reserve((index->efficient ? 4 : 6) * size);
    known.allocate();
  }

  // `value`: the value of the leaf of each state.
  void integrate(const Domain& domain, int n_states, const double* value, const Source<T>* sources,
                 int n_sources, const Unfailing& rest, const Integrals<T>& out) {
    const int64_t size = 1LL << table_bits(domain.n_slots);
    const PointsOf<T> points = known.of(*index, domain);
    for (int k = 0; k < points.count; k += kTogether) {
      const int n_here = points.count - k < kTogether ? points.count - k : kTogether;
      for (int i = 0; i < n_here; ++i)
        transform(domain, sources, n_sources, points.first[k + i].t, y + 2 * i * size);
      if (n_here == kTogether)
        add_points<kTogether>(points.first + k, k > 0, size);
      else
        add_points<1>(points.first + k, k > 0, size);
      if (out.own) add_own(domain, points.first + k, n_here, k > 0, size);
    }
    for (int state = 0; state < n_states; ++state)
      one_state(domain, points, state == 2 ? 0.0 : value[state], rest, out.from(state * size));
  }

 private:
  using V = typename Lanes<T>::type;
  static constexpr int kMostSources = kMostSlots + 1;
  static constexpr int kTogether = 2;  // points that share a pass over the sums

  void transform(const Domain& domain, const Source<T>* sources, int n_sources, double t, T* y_out) {
    const T *any[kMostSources], *worth[kMostSources];
    T factors[kMostSources];
    for (int s = 0; s < n_sources; ++s) {
      double factor = 1.0;
      for (int i = 0; i < sources[s].n_failed; ++i) factor *= t;
      any[s] = sources[s].any;
      worth[s] = sources[s].worth;
      factors[s] = static_cast<T>(factor);
    }
    const int n_bits = table_bits(domain.n_slots);
    const int64_t size = 1LL << n_bits;
    const V tv = V{} + static_cast<T>(t);
    first_six_bits(any, factors, n_sources, y_out, size, tv);
    remaining_bits(y_out, kFirstBits, n_bits, tv);
    first_six_bits(worth, factors, n_sources, y_out + size, size, tv);
    remaining_bits(y_out + size, kFirstBits, n_bits, tv);
  }

  // sums: (4, size) of any, of worth, each without a slot and lost.
  template <int N>
  void add_points(const Point<T>* here, bool begun, int64_t size) {
    for (int64_t i = 0; i < size; i += kLanes) {
      const int high = __builtin_popcountll(i / kLanes);
      V sum[4] = {};
      if (begun)
        for (int s = 0; s < 4; ++s) sum[s] = load<V>(sums + s * size + i);
#pragma GCC unroll 4
      for (int k = 0; k < N; ++k) {
        const V any = load<V>(y + 2 * k * size + i), worth = load<V>(y + (2 * k + 1) * size + i);
        sum[0] += any * load<V>(here[k].any_without[high]);
        sum[1] += any * load<V>(here[k].any_lost[high]);
        sum[2] += worth * load<V>(here[k].worth_without[high]);
        sum[3] += worth * load<V>(here[k].worth_lost[high]);
      }
      for (int s = 0; s < 4; ++s) store(sums + s * size + i, sum[s]);
    }
  }

  // For the own player by itself: any and worth where the others pass.
  void add_own(const Domain& domain, const Point<T>* here, int n_here, bool begun, int64_t size) {
    T *any = sums + 4 * size, *worth = sums + 5 * size;
    for (int64_t i = 0; i < size; ++i) {
      const int z = domain.failed(__builtin_popcountll(i), 0);
      T more_any = begun ? any[i] : 0, more_worth = begun ? worth[i] : 0;
      for (int k = 0; k < n_here; ++k) {
        const T share = static_cast<T>(here[k].share[z + 1]);
        more_any += share * y[2 * k * size + i];
        more_worth += share * y[(2 * k + 1) * size + i];
      }
      any[i] = more_any;
      worth[i] = more_worth;
    }
  }

  void one_state(const Domain& domain, const PointsOf<T>& points, double value, const Unfailing& rest,
                 const Integrals<T>& out) {
    const int n_bits = table_bits(domain.n_slots), most_failed = domain.n_failed + domain.n_slots;
    const int64_t size = 1LL << n_bits;
    double lost_alone[kMostSlots + 2] = {};  // by z: what is lost to the background that fails nothing
    for (int k = 0; k < points.count; ++k) {
      const Point<T>& point = points.first[k];
      const double alone = (1 - point.t) * rest.worth + point.t * value * rest.any;
      for (int z = 1; z <= most_failed; ++z) lost_alone[z] += point.share[z] * alone;
    }
    alignas(64) T alone[kMostSlots][kLanes];
    for (int high = 0; high <= n_bits - 3; ++high)
      for (int lane = 0; lane < kLanes; ++lane)
        alone[high][lane] = static_cast<T>(lost_alone[domain.failed(high, lane)]);
    const V mine = V{} + static_cast<T>(value);
    for (int64_t i = 0; i < size; i += kLanes) {
      const V without = load<V>(sums + 2 * size + i) + mine * load<V>(sums + i);
      const V lost = load<V>(sums + 3 * size + i) + mine * load<V>(sums + size + i);
      store(out.without + i, without);
      store(out.gain + i, without - lost);
      store(out.lost + i, -(lost + load<V>(alone[__builtin_popcountll(i / kLanes)])));
    }
    if (out.own) own_player(domain, points, value, rest, size, out.own);
  }

  // What the row's leaf is worth more than the background's, where the others pass.
  void own_player(const Domain& domain, const PointsOf<T>& points, double value, const Unfailing& rest,
                  int64_t size, T* own) const {
    double alone[kMostSlots + 1] = {};  // by z
    for (int k = 0; k < points.count; ++k)
      for (int z = 0; z <= kMostSlots; ++z)
        alone[z] += points.first[k].share[z + 1] * (value * rest.any - rest.worth);
    for (int64_t i = 0; i < size; ++i)
      own[i] = static_cast<T>(value) * sums[4 * size + i] - sums[5 * size + i] +
               static_cast<T>(alone[domain.failed(__builtin_popcountll(i), 0)]);
  }

  const StreamIndex* index = nullptr;
  Room<T> y, sums;
  KnownPoints<T> known;
};

}  // namespace
}  // namespace fouriershap
