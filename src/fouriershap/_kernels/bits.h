// Spectra on bit-sliced rows. bits_numpy.py is the specification.
#pragma once
#include "span.h"

namespace fouriershap {

// Term k is the parity of the atoms `atoms[start[k]:start[k + 1]]`.
struct Terms {
  Span<const int64_t> start;
  Span<const int32_t> atoms;
  Matrix<const double> coefficients;  // (n_terms, n_outputs)

  int64_t n() const { return coefficients.rows; }
  int64_t n_outputs() const { return coefficients.columns; }
};

// (n_atoms, n_words), 64 rows a word.
using BitColumns = Matrix<const uint64_t>;

// weights: (64 * n_words,) with 0 for the padding of the last word, or empty where every row weighs 1.
struct BitBackground {
  BitColumns words;
  int64_t n_rows;
  Span<const double> weights;
};

// out[r][o] = sum_k coefficients[k][o] * (-1)^(parity of row r over the atoms of term k), for the rows of
// words [first_word, last_word).
void evaluate(const Terms& terms, const BitColumns& columns, int64_t first_word, int64_t last_word,
              Matrix<double> out);

// Closed-form SHAP values (strategy "direct") of rows (n_rows, n_atoms) of bytes 0 or 1.
// out: (n_rows, n_players, n_outputs), added to.
void direct(const Terms& terms, const Matrix<const uint8_t>& rows, const BitBackground& background,
            Span<const int32_t> atom_player, int64_t n_players, double* out);

}  // namespace fouriershap
