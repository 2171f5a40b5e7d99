// Spectra on bit-sliced rows. The twin, bits_numpy.py, documents every array.
// Included once per instruction set: only the structs are guarded.
#include <cstdint>

#ifndef FOURIERSHAP_BITS_ARGUMENTS
#define FOURIERSHAP_BITS_ARGUMENTS
namespace fouriershap {

// Term k is the parity of the atoms `atoms[start[k]:start[k + 1]]`.
struct Terms {
  const int64_t* start;
  const int32_t* atoms;
  const double* coefficients;  // (n_terms, n_outputs)
  int64_t n_terms, n_outputs;
};

// Words [first_word, last_word) of (n_atoms, n_words), 64 rows a word.
struct BitColumns {
  const uint64_t* words;
  int64_t n_words, first_word, last_word;
};

// Rows to explain: (n_rows, n_atoms) bytes 0 or 1.
struct AtomRows {
  const uint8_t* atoms;
  int64_t n_rows, n_atoms;
};

// (n_atoms, n_words), the last word padded. weights: (64 * n_words,) with 0 for the padding, or null where
// every row weighs 1.
struct BitBackground {
  const uint64_t* words;
  int64_t n_words, n_rows;
  const double* weights;
};

}  // namespace fouriershap
#endif

namespace fouriershap {
namespace FS_LEVEL {

// out[r][o] = sum_k coefficients[k][o] * (-1)^(parity of row r over the atoms of term k), for r < n_rows.
// parity: scratch of n_terms words.
void evaluate(const BitColumns& columns, const Terms& terms, int64_t n_rows, uint64_t* parity, double* out);

// Closed-form SHAP values (direct method). out: (n_rows, n_players, n_outputs), added to. False: out of
// memory.
bool direct(const AtomRows& rows, const BitBackground& background, const Terms& terms,
            const int32_t* atom_player, int64_t n_players, double* out);

}  // namespace FS_LEVEL
}  // namespace fouriershap
