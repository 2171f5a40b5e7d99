#include "bits.h"

#include <cstdlib>

#include "simd.h"

namespace fouriershap {
namespace FS_LEVEL {

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
  u64v up[kVectors];  // shifting left by this much brings a lane's bit to the sign position
  for (int v = 0; v < kVectors; ++v)
    for (int l = 0; l < kLanes; ++l) up[v][l] = 63 - (shift + v * kLanes + l);
  const u64v sign = u64v{} + 0x8000000000000000ULL;
  for (int64_t k = 0; k < n_terms; ++k) {
    const u64v word = u64v{} + parity[k];
    const u64v value = (u64v)(f64v{} + coefficients[k * n_outputs]);
    for (int v = 0; v < kVectors; ++v) acc[v] += (f64v)(value ^ ((word << up[v]) & sign));
  }
  for (int v = 0; v < kVectors; ++v) store(sums + v * kLanes, acc[v]);
}

}  // namespace

void evaluate(const uint64_t* columns, int64_t n_words, const int64_t* start, const int32_t* atoms,
              int64_t n_terms, const double* coefficients, int64_t n_outputs, int64_t first_word,
              int64_t last_word, int64_t n_rows, uint64_t* parity, double* out) {
  double sums[64];
  for (int64_t w = first_word; w < last_word; ++w) {
    for (int64_t k = 0; k < n_terms; ++k) {
      uint64_t p = 0;
      for (int64_t a = start[k]; a < start[k + 1]; ++a) p ^= columns[atoms[a] * n_words + w];
      parity[k] = p;
    }
    const int64_t rows = n_rows - 64 * w < 64 ? n_rows - 64 * w : 64;
    for (int64_t o = 0; o < n_outputs; ++o) {
      for (int shift = 0; shift < rows; shift += kRows)
        accumulate(parity, coefficients + o, n_terms, n_outputs, shift, sums + shift);
      for (int64_t r = 0; r < rows; ++r) out[(64 * w + r) * n_outputs + o] = sums[r];
    }
  }
}

namespace {

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
inline void add_weighted_shares(const uint64_t* e, int64_t degree, const Word& c, uint64_t odd,
                                double* share, uint64_t chi, const double* weights) {
  while (odd) {
    const int b = __builtin_ctzll(odd);
    odd &= odd - 1;
    int64_t m = 0;
    for (int p = 0; p < c.n_planes; ++p) m |= static_cast<int64_t>(c.planes[p] >> b & 1) << p;
    const double value = (chi >> b & 1 ? -weights[b] : weights[b]) / static_cast<double>(m);
    for (int64_t j = 0; j < degree; ++j) share[j] += (e[j] >> b & 1) ? value : 0.0;
  }
}

}  // namespace

void direct(const uint8_t* rows, int64_t n_rows, int64_t n_atoms, const uint64_t* background,
            int64_t n_words, int64_t n_background, const double* weights, const int64_t* start,
            const int32_t* atoms, const int32_t* atom_player, int64_t n_terms,
            const double* coefficients, int64_t n_outputs, int64_t n_players, double* out) {
  int64_t widest = 1;
  for (int64_t k = 0; k < n_terms; ++k)
    if (start[k + 1] - start[k] > widest) widest = start[k + 1] - start[k];
  uint64_t* e = static_cast<uint64_t*>(std::malloc(widest * sizeof(uint64_t)));
  double* share = static_cast<double*>(std::malloc(widest * sizeof(double)));
  const int tail = static_cast<int>(n_background - 64 * (n_words - 1));
  const uint64_t last = tail < 64 ? (1ULL << tail) - 1 : ~0ULL;
  for (int64_t r = 0; r < n_rows; ++r) {
    const uint8_t* row = rows + r * n_atoms;
    double* phi = out + r * n_players * n_outputs;
    for (int64_t k = 0; k < n_terms; ++k) {
      const int32_t* term = atoms + start[k];
      const int64_t degree = start[k + 1] - start[k];
      for (int64_t j = 0; j < degree; ++j) share[j] = 0.0;
      for (int64_t w = 0; w < n_words; ++w) {
        uint64_t chi = 0;
        for (int64_t j = 0; j < degree; ++j) {
          const uint64_t column = background[term[j] * n_words + w];
          chi ^= column;
          e[j] = row[term[j]] ? ~column : column;
        }
        const Word c = count_planes(e, degree);
        const uint64_t odd = c.n_planes ? c.planes[0] & (w + 1 == n_words ? last : ~0ULL) : 0;
        if (weights)
          add_weighted_shares(e, degree, c, odd, share, chi, weights + 64 * w);
        else
          add_shares(e, degree, c, odd, share, chi);
      }
      for (int64_t j = 0; j < degree; ++j) {
        double* mine = phi + atom_player[term[j]] * n_outputs;
        for (int64_t o = 0; o < n_outputs; ++o) mine[o] -= 2.0 * coefficients[k * n_outputs + o] * share[j];
      }
    }
  }
  std::free(share);
  std::free(e);
}

}  // namespace FS_LEVEL
}  // namespace fouriershap
