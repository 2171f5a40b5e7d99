// Spectra on bit-sliced rows. Included once per instruction set: no include guard on purpose.
#include <cstdint>

namespace fouriershap {
namespace FS_LEVEL {

// out[r][o] = sum_k coefficients[k][o] * (-1)^(parity of row r over the atoms of term k).
// columns: (n_atoms, n_words), 64 rows a word. parity: scratch of n_terms words.
void evaluate(const uint64_t* columns, int64_t n_words, const int64_t* start, const int32_t* atoms,
              int64_t n_terms, const double* coefficients, int64_t n_outputs, int64_t first_word,
              int64_t last_word, int64_t n_rows, uint64_t* parity, double* out);

// Closed-form SHAP values (direct method). rows: (n_rows, n_atoms) bytes 0/1.
// background: (n_atoms, n_words), its last word padded; weights: (64 * n_words,) with 0 for the padding, or
// null when all n_background rows weigh 1. out: (n_rows, n_players, n_outputs), added to.
void direct(const uint8_t* rows, int64_t n_rows, int64_t n_atoms, const uint64_t* background,
            int64_t n_words, int64_t n_background, const double* weights, const int64_t* start,
            const int32_t* atoms, const int32_t* atom_player, int64_t n_terms,
            const double* coefficients, int64_t n_outputs, int64_t n_players, double* out);

}  // namespace FS_LEVEL
}  // namespace fouriershap
