// Sums of products over players: their Shapley values. products_numpy.py is the specification.
#pragma once
#include "scratch.h"
#include "simd.h"
#include "span.h"

namespace fouriershap {

// Factors (n_rows, n_players, 2, n_terms): real parts, then imaginary ones. n_terms: a multiple of 16.
template <class T>
struct Factors {
  const T* values;
  int64_t n_rows, n_players, n_terms;
};

template <class T>
struct Quadrature {
  Span<const T> points;  // in [0, 1], (n_points, n_players)
  Span<const T> weights;
};

namespace {

// Complex numbers of one vector each.
template <class T>
struct Complex {
  typedef typename Vec<T>::type V;
  V real, imag;

  Complex operator*(const Complex& o) const {
    return {real * o.real - imag * o.imag, real * o.imag + imag * o.real};
  }
};

template <class T>
inline Complex<T> at(const T* values, int64_t n_terms) {
  typedef typename Vec<T>::type V;
  return {load<V>(values), load<V>(values + n_terms)};
}

template <class T>
inline double total(typename Vec<T>::type v) {
  double lanes[Vec<T>::lanes];
  for (int i = 0; i < Vec<T>::lanes; ++i) lanes[i] = static_cast<double>(v[i]);
  for (int n = Vec<T>::lanes / 2; n > 0; n /= 2)  // by halves: a chain of additions has a long latency
    for (int i = 0; i < n; ++i) lanes[i] += lanes[i + n];
  return lanes[0];
}

constexpr int kTogether = 2;  // vectors of terms, and nodes, whose chains of products run side by side
constexpr int64_t kPackedBytes = 1 << 18;  // of components at a time: they stay in the second cache,
constexpr int64_t kPackedFor = 16;         // as do the rows for which they are packed

// Factors of all players for one block of kTogether vectors of terms, (n_players, kTogether), contiguous: in
// a row they are a power of two apart, so that few sets of the first-level cache would be used.
template <class T>
void pack(const T* row, int64_t n_players, int64_t n_terms, Complex<T>* out) {
  for (int64_t j = 0; j < n_players; ++j)
    for (int v = 0; v < kTogether; ++v)
      out[j * kTogether + v] = at(row + 2 * j * n_terms + v * Vec<T>::lanes, n_terms);
}

// sums[j] += weight * (x_j - a_j) * sum over N nodes of their weight * prod_{k != j} (a_k + t_k (x_k - a_k)),
// by products from both ends; `before` holds those of the players before.
template <class T, int N>
void add_component(const Complex<T>* row, const Complex<T>* component, int64_t n_players, T weight,
                   const T* points, const T* weights, Complex<T>* before, Complex<T>* sums) {
  typedef typename Complex<T>::V V;
  Complex<T> product[N][kTogether];
  for (int q = 0; q < N; ++q)
    for (int v = 0; v < kTogether; ++v) product[q][v] = Complex<T>{V{} + weight * weights[q], {}};
  for (int64_t j = 0; j < n_players; ++j)
    for (int v = 0; v < kTogether; ++v) {
      const Complex<T> x = row[j * kTogether + v], a = component[j * kTogether + v];
      const Complex<T> d = {x.real - a.real, x.imag - a.imag};
      for (int q = 0; q < N; ++q) {
        const Complex<T> factor = {a.real + points[q * n_players + j] * d.real,
                                   a.imag + points[q * n_players + j] * d.imag};
        before[(j * kTogether + v) * N + q] = product[q][v];
        product[q][v] = product[q][v] * factor;
      }
    }
  for (int q = 0; q < N; ++q)
    for (int v = 0; v < kTogether; ++v) product[q][v] = Complex<T>{V{} + T(1), {}};
  for (int64_t j = n_players - 1; j >= 0; --j)
    for (int v = 0; v < kTogether; ++v) {
      const Complex<T> x = row[j * kTogether + v], a = component[j * kTogether + v];
      const Complex<T> d = {x.real - a.real, x.imag - a.imag};
      Complex<T> others = {};
      for (int q = 0; q < N; ++q) {
        const Complex<T> factor = {a.real + points[q * n_players + j] * d.real,
                                   a.imag + points[q * n_players + j] * d.imag};
        const Complex<T> ahead = before[(j * kTogether + v) * N + q], after = product[q][v];
        others.real += ahead.real * after.real;
        others.real -= ahead.imag * after.imag;
        others.imag += ahead.real * after.imag;
        others.imag += ahead.imag * after.real;
        product[q][v] = after * factor;
      }
      Complex<T>& sum = sums[j * kTogether + v];
      sum.real += d.real * others.real;
      sum.real -= d.imag * others.imag;
      sum.imag += d.real * others.imag;
      sum.imag += d.imag * others.real;
    }
}

template <class T>
inline void add_nodes(const Complex<T>* row, const Complex<T>* component, int64_t n_players, T weight,
                      const Quadrature<T>& nodes, Complex<T>* before, Complex<T>* sums) {
  int64_t q = 0;
  for (; q + 2 <= nodes.weights.size; q += 2)
    add_component<T, 2>(row, component, n_players, weight, nodes.points + q * n_players, nodes.weights + q,
                        before, sums);
  if (q < nodes.weights.size)
    add_component<T, 1>(row, component, n_players, weight, nodes.points + q * n_players, nodes.weights + q,
                        before, sums);
}

// out (n_players, n_outputs) += real part of conj(coefficient) * sum, over one block of terms.
template <class T>
inline void add_outputs(const Complex<T>* sums, const T* coefficients, int64_t n_players, int64_t n_terms,
                        int64_t n_outputs, double* out) {
  for (int64_t j = 0; j < n_players; ++j)
    for (int64_t o = 0; o < n_outputs; ++o) {
      typename Vec<T>::type sum = {};
      for (int v = 0; v < kTogether; ++v) {
        const Complex<T> w = at(coefficients + 2 * o * n_terms + v * Vec<T>::lanes, n_terms);
        const Complex<T>& s = sums[j * kTogether + v];
        sum += w.real * s.real + w.imag * s.imag;
      }
      out[j * n_outputs + o] += total<T>(sum);
    }
}

typedef Complex<double> Pair;
constexpr int64_t kLanes = Vec<double>::lanes;
constexpr int64_t kTileRows = 8;  // that share each read of a table

// products[S] = product of the factors of the players of S, for one vector of terms.
inline void all_products(const double* row, int64_t n_players, int64_t n_terms, Pair* products) {
  products[0] = Pair{Pair::V{} + 1.0, {}};
  for (int64_t j = 0; j < n_players; ++j) {
    const Pair factor = at(row + 2 * j * n_terms, n_terms);
    for (int64_t s = 0; s < int64_t{1} << j; ++s) products[(int64_t{1} << j) + s] = products[s] * factor;
  }
}

// Values of rows against a mixture of products. weights: (n_components,). coefficients: (n_outputs, 2,
// n_terms), the imaginary parts negated. out: (n_rows, n_players, n_outputs), added to.
template <class T>
void components(const Factors<T>& rows, const Factors<T>& mixture, Span<const T> weights,
                const Quadrature<T>& nodes, const T* coefficients, int64_t n_outputs, double* out) {
  constexpr int64_t block = kTogether * Vec<T>::lanes;
  const int64_t n_players = rows.n_players, n_terms = rows.n_terms, stride = 2 * n_players * n_terms;
  assert(n_terms % block == 0 && mixture.n_players == n_players && mixture.n_terms == n_terms);
  if (!n_players) return;
  const int64_t n_packed = n_players * kTogether, most = kPackedBytes / (n_packed * sizeof(Complex<T>));
  const int64_t chunk = most < 1 ? 1 : most < mixture.n_rows ? most : mixture.n_rows;
  const AlignedScratch<Complex<T>> sums(n_packed), before(2 * n_packed), mine(n_packed),
      packed(chunk * n_packed);
  for (int64_t tile = 0; tile < rows.n_rows; tile += kPackedFor)
    for (int64_t m = 0; m < n_terms; m += block)
      for (int64_t first = 0; first < mixture.n_rows; first += chunk) {
        const int64_t n = mixture.n_rows - first < chunk ? mixture.n_rows - first : chunk;
        const int64_t end = rows.n_rows - tile < kPackedFor ? rows.n_rows : tile + kPackedFor;
        for (int64_t c = 0; c < n; ++c)
          pack<T>(mixture.values + (first + c) * stride + m, n_players, n_terms, packed + c * n_packed);
        for (int64_t r = tile; r < end; ++r) {
          pack<T>(rows.values + r * stride + m, n_players, n_terms, mine);
          for (int64_t i = 0; i < n_packed; ++i) sums[i] = Complex<T>{};
          for (int64_t c = 0; c < n; ++c)
            add_nodes<T>(mine, packed + c * n_packed, n_players, weights[first + c], nodes, before, sums);
          add_outputs<T>(sums, coefficients + m, n_players, n_terms, n_outputs,
                         out + r * n_players * n_outputs);
        }
      }
}

// Sums over rows of the products of every set of players. weights: (n_rows,). out: (2^n_players, 2, n_terms),
// added to.
void subset_sums(const Factors<double>& rows, Span<const double> weights, double* out) {
  const int64_t n_sets = int64_t{1} << rows.n_players, n_terms = rows.n_terms;
  const AlignedScratch<Pair> products(n_sets), sums(n_sets);
  assert(n_terms % kLanes == 0);
  for (int64_t m = 0; m < n_terms; m += kLanes) {
    for (int64_t s = 0; s < n_sets; ++s) sums[s] = Pair{};
    for (int64_t r = 0; r < rows.n_rows; ++r) {
      all_products(rows.values + 2 * r * rows.n_players * n_terms + m, rows.n_players, n_terms, products);
      for (int64_t s = 0; s < n_sets; ++s) {
        sums[s].real += weights[r] * products[s].real;
        sums[s].imag += weights[r] * products[s].imag;
      }
    }
    for (int64_t s = 0; s < n_sets; ++s) {
      double* mine = out + 2 * s * n_terms + m;
      store(mine, load<Pair::V>(mine) + sums[s].real);
      store(mine + n_terms, load<Pair::V>(mine + n_terms) + sums[s].imag);
    }
  }
}

// The worth of every coalition. table: (n_outputs, 2^n_players, 2, n_terms), the imaginary parts negated.
// out: (n_rows, 2^n_players, n_outputs), written.
void games(const Factors<double>& rows, const double* table, int64_t n_outputs, double* out) {
  const int64_t n_sets = int64_t{1} << rows.n_players, n_terms = rows.n_terms, size = n_sets * n_outputs;
  const AlignedScratch<Pair> products(n_sets);
  const AlignedScratch<Pair::V> worth(kTileRows * size);
  assert(n_terms % kLanes == 0);
  for (int64_t first = 0; first < rows.n_rows; first += kTileRows) {
    const int64_t n = rows.n_rows - first < kTileRows ? rows.n_rows - first : kTileRows;
    for (int64_t i = 0; i < n * size; ++i) worth[i] = Pair::V{};
    for (int64_t m = 0; m < n_terms; m += kLanes)
      for (int64_t r = 0; r < n; ++r) {
        all_products(rows.values + 2 * (first + r) * rows.n_players * n_terms + m, rows.n_players, n_terms,
                     products);
        for (int64_t o = 0; o < n_outputs; ++o)
          for (int64_t s = 0; s < n_sets; ++s) {
            const Pair w = at(table + 2 * (o * n_sets + s) * n_terms + m, n_terms);
            worth[r * size + o * n_sets + s] += w.real * products[s].real + w.imag * products[s].imag;
          }
      }
    for (int64_t r = 0; r < n; ++r)
      for (int64_t o = 0; o < n_outputs; ++o)
        for (int64_t s = 0; s < n_sets; ++s)
          out[((first + r) * n_sets + s) * n_outputs + o] = total<double>(worth[r * size + o * n_sets + s]);
  }
}

}  // namespace
}  // namespace fouriershap
