// Sums of products over players: their Shapley values. products_numpy.py is the specification.
#pragma once
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
  Span<const T> points;  // in [0, 1]
  Span<const T> weights;
};

// Values of rows against a mixture of products. weights: (n_components,). coefficients: (n_outputs, 2,
// n_terms), the imaginary parts negated. out: (n_rows, n_players, n_outputs), added to.
template <class T>
void components(const Factors<T>& rows, const Factors<T>& mixture, Span<const T> weights,
                const Quadrature<T>& nodes, const T* coefficients, int64_t n_outputs, double* out);

// Sums over rows of the products of every set of players. weights: (n_rows,). out: (2^n_players, 2, n_terms),
// added to.
void subset_sums(const Factors<double>& rows, Span<const double> weights, double* out);

// The worth of every coalition. table: (n_outputs, 2^n_players, 2, n_terms), the imaginary parts negated.
// out: (n_rows, 2^n_players, n_outputs), written.
void games(const Factors<double>& rows, const double* table, int64_t n_outputs, double* out);

}  // namespace fouriershap
