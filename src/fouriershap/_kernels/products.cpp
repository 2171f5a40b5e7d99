#include "products.h"

#include "scratch.h"
#include "simd.h"

namespace fouriershap {
namespace FS_LEVEL {

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
  double sum = 0;
  for (int i = 0; i < Vec<T>::lanes; ++i) sum += static_cast<double>(v[i]);
  return sum;
}

constexpr int kTogether = 2;  // vectors of terms, and nodes, whose chains of products run side by side

// What one block of kTogether vectors of terms needs of one player at N nodes.
template <class T, int N>
struct Link {
  Complex<T> factor[N][kTogether];  // t x + (1 - t) a
  Complex<T> before[N][kTogether];  // product of the factors of the players before
};

// sums[j] += weight * (x_j - a_j) * sum over N nodes of their weight * prod_{k != j} (a_k + t (x_k - a_k)),
// by products from both ends.
template <class T, int N>
void add_component(const T* row, const T* component, int64_t n_players, int64_t n_terms, T weight,
                   const T* points, const T* weights, Link<T, N>* links, Complex<T>* sums) {
  typedef typename Complex<T>::V V;
  constexpr int64_t lanes = Vec<T>::lanes;
  Complex<T> product[N][kTogether];
  for (int q = 0; q < N; ++q)
    for (int v = 0; v < kTogether; ++v) product[q][v] = Complex<T>{V{} + weight * weights[q], {}};
  for (int64_t j = 0; j < n_players; ++j)
    for (int v = 0; v < kTogether; ++v) {
      const int64_t place = 2 * j * n_terms + v * lanes;
      const Complex<T> x = at(row + place, n_terms), a = at(component + place, n_terms);
      const Complex<T> d = {x.real - a.real, x.imag - a.imag};
      for (int q = 0; q < N; ++q) {
        const Complex<T> factor = {a.real + points[q] * d.real, a.imag + points[q] * d.imag};
        links[j].before[q][v] = product[q][v];
        links[j].factor[q][v] = factor;
        product[q][v] = product[q][v] * factor;
      }
    }
  for (int q = 0; q < N; ++q)
    for (int v = 0; v < kTogether; ++v) product[q][v] = Complex<T>{V{} + T(1), {}};
  for (int64_t j = n_players - 1; j >= 0; --j)
    for (int v = 0; v < kTogether; ++v) {
      Complex<T> others = {};
      for (int q = 0; q < N; ++q) {
        const Complex<T> before = links[j].before[q][v], after = product[q][v];
        others.real += before.real * after.real;
        others.real -= before.imag * after.imag;
        others.imag += before.real * after.imag;
        others.imag += before.imag * after.real;
        product[q][v] = after * links[j].factor[q][v];
      }
      const int64_t place = 2 * j * n_terms + v * lanes;
      const Complex<T> x = at(row + place, n_terms), a = at(component + place, n_terms);
      const Complex<T> d = {x.real - a.real, x.imag - a.imag};
      Complex<T>& sum = sums[j * kTogether + v];
      sum.real += d.real * others.real;
      sum.real -= d.imag * others.imag;
      sum.imag += d.real * others.imag;
      sum.imag += d.imag * others.real;
    }
}

typedef Complex<double> Pair;
constexpr int64_t kLanes = Vec<double>::lanes;
constexpr int64_t kTileRows = 8;  // that share what is read of a table

// products[S] = product of the factors of the players of S, for one vector of terms.
inline void all_products(const double* row, int64_t n_players, int64_t n_terms, Pair* products) {
  products[0] = Pair{Pair::V{} + 1.0, {}};
  for (int64_t j = 0; j < n_players; ++j) {
    const Pair factor = at(row + 2 * j * n_terms, n_terms);
    for (int64_t s = 0; s < int64_t{1} << j; ++s) products[(int64_t{1} << j) + s] = products[s] * factor;
  }
}

}  // namespace

template <class T>
bool components(const Factors<T>& rows, const Factors<T>& mixture, const T* weights, const Nodes<T>& nodes,
                const T* coefficients, int64_t n_outputs, double* out) {
  constexpr int64_t block = kTogether * Vec<T>::lanes;
  const int64_t n_players = rows.n_players, n_terms = rows.n_terms, stride = 2 * n_players * n_terms;
  assert(n_terms % block == 0 && mixture.n_players == n_players && mixture.n_terms == n_terms);
  const AlignedScratch<Complex<T>> sums(n_players * kTogether);
  const AlignedScratch<Link<T, 2>> two(n_players);
  const AlignedScratch<Link<T, 1>> one(n_players);
  if (!sums || !two || !one) return false;
  for (int64_t r = 0; r < rows.n_rows; ++r)
    for (int64_t m = 0; m < n_terms; m += block) {
      for (int64_t i = 0; i < n_players * kTogether; ++i) sums[i] = Complex<T>{};
      for (int64_t c = 0; c < mixture.n_rows; ++c) {
        const T *row = rows.values + r * stride + m, *component = mixture.values + c * stride + m;
        int64_t q = 0;
        for (; q + 2 <= nodes.n; q += 2)
          add_component<T, 2>(row, component, n_players, n_terms, weights[c], nodes.points + q,
                              nodes.weights + q, two, sums);
        if (q < nodes.n)
          add_component<T, 1>(row, component, n_players, n_terms, weights[c], nodes.points + q,
                              nodes.weights + q, one, sums);
      }
      for (int64_t j = 0; j < n_players; ++j)
        for (int64_t o = 0; o < n_outputs; ++o) {
          typename Vec<T>::type sum = {};
          for (int v = 0; v < kTogether; ++v) {
            const Complex<T> w = at(coefficients + 2 * o * n_terms + m + v * Vec<T>::lanes, n_terms);
            const Complex<T>& s = sums[j * kTogether + v];
            sum += w.real * s.real + w.imag * s.imag;
          }
          out[(r * n_players + j) * n_outputs + o] += total<T>(sum);
        }
    }
  return true;
}

template bool components(const Factors<float>&, const Factors<float>&, const float*, const Nodes<float>&,
                         const float*, int64_t, double*);
template bool components(const Factors<double>&, const Factors<double>&, const double*, const Nodes<double>&,
                         const double*, int64_t, double*);

bool subset_sums(const Factors<double>& rows, const double* weights, double* out) {
  const int64_t n_sets = int64_t{1} << rows.n_players, n_terms = rows.n_terms;
  const AlignedScratch<Pair> products(n_sets), sums(n_sets);
  if (!products || !sums) return false;
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
  return true;
}

bool games(const Factors<double>& rows, const double* table, int64_t n_outputs, double* out) {
  const int64_t n_sets = int64_t{1} << rows.n_players, n_terms = rows.n_terms, size = n_sets * n_outputs;
  const AlignedScratch<Pair> products(n_sets);
  const AlignedScratch<Pair::V> worth(kTileRows * size);
  if (!products || !worth) return false;
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
  return true;
}

}  // namespace FS_LEVEL
}  // namespace fouriershap
