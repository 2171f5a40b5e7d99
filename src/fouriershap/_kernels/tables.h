// Patterns, histograms and look-ups. Included once per instruction set: no include guard on purpose.
// The twin, tables_numpy.py, documents every argument.
#include <cstdint>

namespace fouriershap {
namespace FS_LEVEL {

void histogram(const uint8_t* codes8, const uint16_t* codes16, int64_t stride, int64_t n_rows, bool missing,
               const double* weights, const int32_t* cut_start, const int32_t* cut_missing,
               const int32_t* cut_column, const uint16_t* cut_at, const int32_t* cut_weight, const int32_t* block_base,
               const int32_t* block_patterns, const int64_t* offset, int64_t first_block,
               int64_t last_block, double* out);

template <class T>
void explain(const uint8_t* codes8, const uint16_t* codes16, int64_t stride, int64_t n_rows, bool missing,
             const int32_t* cut_start, const int32_t* cut_missing, const int32_t* cut_column, const uint16_t* cut_at,
             const int32_t* cut_weight, const int32_t* block_base, const int32_t* block_patterns,
             const int32_t* table_block, const int64_t* table_offset, const int32_t* group_start,
             const int32_t* group_players, const int32_t* group_output, const int32_t* group_width,
             int64_t n_groups, const T* values, int64_t rows_per_block, int64_t n_players,
             int64_t n_outputs, double* out);

// codes8[first_line + p][r] = lut[offset[p] + codes16[source[p]][r]] for each page p.
void pages(const uint16_t* codes16, int64_t stride, int64_t n_rows, const int32_t* source,
           const int64_t* offset, int64_t n_pages, const uint8_t* lut, int64_t first_line, uint8_t* codes8);

// T: float or double. Writes codes8 and codes16 by `column`, or codes32 (a line per feature) where it is given.
template <class T>
bool encode(const T* rows, int64_t n_rows, int64_t n_features, const T* tiers, const int64_t* tier_start,
            const int64_t* n_levels, const bool* categorical, const int32_t* column, uint8_t* codes8,
            uint16_t* codes16, int32_t* codes32, int64_t stride);

}  // namespace FS_LEVEL
}  // namespace fouriershap
