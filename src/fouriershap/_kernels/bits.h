// Spectra on bit-sliced rows. bits_numpy.py is the specification.
#pragma once
#include "scratch.h"
#include "simd.h"
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

namespace {

typedef Vec<double>::type f64v;
typedef Vec<uint64_t>::type u64v;
constexpr int kLanes = Vec<double>::lanes;
constexpr int kVectors = 8;  // accumulators that stay in registers over all terms
constexpr int kRows = kLanes * kVectors;

// Adds all terms for kRows consecutive rows, which are bits [shift, shift + kRows) of the parity words.
void accumulate(const uint64_t* parity, const double* coefficients, int64_t n_terms, int64_t n_outputs,
                int shift, double* sums) {
  f64v acc[kVectors] = {};
  const uint64_t lanes[4] = {0, 1, 2, 3};
  u64v up[kVectors];  // shifting left by this much brings a lane's bit to the sign position
  for (int v = 0; v < kVectors; ++v)
    up[v] = static_cast<uint64_t>(63 - shift - v * kLanes) - load<u64v>(lanes);
  const u64v sign = u64v{} + 0x8000000000000000ULL;
  for (int64_t k = 0; k < n_terms; ++k) {
    const u64v word = u64v{} + parity[k];
    const u64v value = (u64v)(f64v{} + coefficients[k * n_outputs]);
    for (int v = 0; v < kVectors; ++v) acc[v] += (f64v)(value ^ ((word << up[v]) & sign));
  }
  for (int v = 0; v < kVectors; ++v) store(sums + v * kLanes, acc[v]);
}

// out[r][o] = sum_k coefficients[k][o] * (-1)^(parity of row r over the atoms of term k), for the rows of
// words [first_word, last_word).
void evaluate(const Terms& terms, const BitColumns& columns, int64_t first_word, int64_t last_word,
              Matrix<double> out) {
  const int64_t n_terms = terms.n(), n_outputs = terms.n_outputs();
  const Scratch<uint64_t> parity(n_terms);
  double sums[64];
  for (int64_t w = first_word; w < last_word; ++w) {
    for (int64_t k = 0; k < n_terms; ++k) {
      uint64_t p = 0;
      for (int64_t a = terms.start[k]; a < terms.start[k + 1]; ++a) p ^= columns[terms.atoms[a]][w];
      parity[k] = p;
    }
    const int64_t rows = std::min<int64_t>(out.rows - 64 * w, 64);
    for (int64_t o = 0; o < n_outputs; ++o) {
      for (int shift = 0; shift < rows; shift += kRows)
        accumulate(parity, terms.coefficients + o, n_terms, n_outputs, shift, sums + shift);
      for (int64_t r = 0; r < rows; ++r) out[64 * w + r][o] = sums[r];
    }
  }
}

// The terms of one row against one background word: `e[j]` marks the background rows that differ from the
// row in the j-th player of the term, `planes` is their number per background row, in binary.
struct Word {
  uint64_t planes[32];
  int n_planes;
};

inline Word count_planes(const uint64_t* e, int64_t degree) {
  Word c;
  c.n_planes = 0;
  for (int64_t j = 0; j < degree; ++j) {
    uint64_t carry = e[j];
    for (int b = 0; b < c.n_planes && carry; ++b) {
      const uint64_t next = c.planes[b] & carry;
      c.planes[b] ^= carry;
      carry = next;
    }
    assert(!carry || c.n_planes < 32);  // fewer than 2^32 players in a term
    if (carry) c.planes[c.n_planes++] = carry;
  }
  return c;
}

// share[j] += sum over background rows with an odd count m, player j differing, of chi / m. All weights 1.
inline void add_shares(const uint64_t* e, int64_t degree, const Word& c, uint64_t odd, double* share,
                       uint64_t chi) {
  for (int64_t m = 1; m <= degree && odd; m += 2) {
    uint64_t here = odd;
    for (int b = 1; b < c.n_planes; ++b) here &= (m >> b & 1) ? c.planes[b] : ~c.planes[b];
    if ((m >> c.n_planes) != 0) break;
    if (!here) continue;
    odd &= ~here;
    const double inverse = 1.0 / static_cast<double>(m);
    for (int64_t j = 0; j < degree; ++j) {
      const uint64_t mine = e[j] & here;
      share[j] += inverse * (__builtin_popcountll(mine) - 2 * __builtin_popcountll(mine & chi));
    }
  }
}

// The same with a weight per background row.
inline void add_weighted_shares(const uint64_t* e, int64_t degree, const Word& c, uint64_t odd, double* share,
                                uint64_t chi, const double* weights) {
  while (odd) {
    const int b = __builtin_ctzll(odd);
    odd &= odd - 1;
    int64_t m = 0;
    for (int p = 0; p < c.n_planes; ++p) m |= static_cast<int64_t>(c.planes[p] >> b & 1) << p;
    const double value = (chi >> b & 1 ? -weights[b] : weights[b]) / static_cast<double>(m);
    for (int64_t j = 0; j < degree; ++j) share[j] += (e[j] >> b & 1) ? value : 0.0;
  }
}

// share[j] = sum over the background of the share of player j in a term.
void term_shares(const uint8_t* row, const BitBackground& background, const int32_t* term, int64_t degree,
                 uint64_t* differs, double* share) {
  const int64_t n_words = background.words.columns;
  const int tail = static_cast<int>(background.n_rows - 64 * (n_words - 1));
  assert(tail > 0 && tail <= 64);
  const uint64_t last = tail < 64 ? (1ULL << tail) - 1 : ~0ULL;
  for (int64_t j = 0; j < degree; ++j) share[j] = 0.0;
  for (int64_t w = 0; w < n_words; ++w) {
    uint64_t chi = 0;
    for (int64_t j = 0; j < degree; ++j) {
      const uint64_t column = background.words[term[j]][w];
      chi ^= column;
      differs[j] = row[term[j]] ? ~column : column;
    }
    const Word c = count_planes(differs, degree);
    const uint64_t odd = c.n_planes ? c.planes[0] & (w + 1 == n_words ? last : ~0ULL) : 0;
    if (background.weights.size)
      add_weighted_shares(differs, degree, c, odd, share, chi, background.weights + 64 * w);
    else
      add_shares(differs, degree, c, odd, share, chi);
  }
}

// Closed-form SHAP values (strategy "direct") of rows (n_rows, n_atoms) of bytes 0 or 1.
// out: (n_rows, n_players, n_outputs), added to.
void direct(const Terms& terms, const Matrix<const uint8_t>& rows, const BitBackground& background,
            Span<const int32_t> atom_player, int64_t n_players, double* out) {
  const int64_t n_terms = terms.n(), n_outputs = terms.n_outputs();
  int64_t widest = 1;
  for (int64_t k = 0; k < n_terms; ++k) widest = std::max(widest, terms.start[k + 1] - terms.start[k]);
  const Scratch<uint64_t> differs(widest);
  const Scratch<double> share(widest);
  for (int64_t r = 0; r < rows.rows; ++r) {
    const uint8_t* row = rows[r];
    double* phi = out + r * n_players * n_outputs;
    for (int64_t k = 0; k < n_terms; ++k) {
      const int32_t* term = terms.atoms + terms.start[k];
      const int64_t degree = terms.start[k + 1] - terms.start[k];
      term_shares(row, background, term, degree, differs, share);
      for (int64_t j = 0; j < degree; ++j) {
        assert(atom_player[term[j]] >= 0 && atom_player[term[j]] < n_players);
        double* mine = phi + atom_player[term[j]] * n_outputs;
        for (int64_t o = 0; o < n_outputs; ++o) mine[o] -= 2.0 * terms.coefficients[k][o] * share[j];
      }
    }
  }
}

}  // namespace
}  // namespace fouriershap
