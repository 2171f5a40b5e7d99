// Sums of products over players: their Shapley values. The twin, products_numpy.py, documents every array.
// Included once per instruction set: only the structs are guarded.
#include <cstdint>

#ifndef FOURIERSHAP_PRODUCTS_ARGUMENTS
#define FOURIERSHAP_PRODUCTS_ARGUMENTS
namespace fouriershap {

// Factors (n_rows, n_players, 2, n_terms): real parts, then imaginary ones. n_terms: a multiple of 16.
template <class T>
struct Factors {
  const T* values;
  int64_t n_rows, n_players, n_terms;
};

template <class T>
struct Nodes {
  const T* points;   // (n,) in [0, 1]
  const T* weights;  // (n,)
  int64_t n;
};

}  // namespace fouriershap
#endif

namespace fouriershap {
namespace FS_LEVEL {

// Values of rows against a mixture of products. weights: (n_components,). coefficients: (n_outputs, 2,
// n_terms), the imaginary parts negated. out: (n_rows, n_players, n_outputs), added to. False: out of memory.
template <class T>
bool components(const Factors<T>& rows, const Factors<T>& mixture, const T* weights, const Nodes<T>& nodes,
                const T* coefficients, int64_t n_outputs, double* out);

// Sums over rows of the products of every set of players. weights: (n_rows,). out: (2^n_players, 2, n_terms),
// added to. False: out of memory.
bool subset_sums(const Factors<double>& rows, const double* weights, double* out);

// The worth of every coalition. table: (n_outputs, 2^n_players, 2, n_terms), the imaginary parts negated.
// out: (n_rows, 2^n_players, n_outputs), written. False: out of memory.
bool games(const Factors<double>& rows, const double* table, int64_t n_outputs, double* out);

}  // namespace FS_LEVEL
}  // namespace fouriershap
