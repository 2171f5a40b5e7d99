// Building tables. Included once per instruction set: no include guard on purpose.
// The twins, build_numpy.py and build_trees_numpy.py, document every argument.
#include <cstdint>

namespace fouriershap {
namespace FS_LEVEL {

void spectrum_tables(const int32_t* block_bits, const int64_t* histogram_offset, const double* histograms,
                     const int64_t* term_start, const uint32_t* term_mask, const double* coefficients,
                     int64_t n_outputs, const double* shares, int64_t shares_side,
                     const int32_t* table_block, const int64_t* table_offset, const int32_t* table_slots,
                     int64_t slots_stride, int64_t order, int64_t first_table, int64_t last_table, double* values);

template <class T>
void tree_tables(const double* histograms, const int64_t* histogram_offset, const int32_t* block_patterns,
                 const int64_t* feature_start, const int32_t* feature_states, const int64_t* leaf_start,
                 const int32_t* leaf_node, const int64_t* leaf_player_start, const int32_t* leaf_players,
                 const double* leaf_ratio, const int64_t* fail_start, const uint32_t* fail,
                 const double* leaf_values, int64_t width, const double* nodes, const int64_t* nodes_start,
                 const int32_t* table_block, const int64_t* table_offset, const int32_t* table_slots,
                 int64_t slots_stride, int64_t order, int64_t first_table, int64_t last_table, T* values,
                 double* reached);

int64_t cover(const int64_t* start, const int32_t* atoms, int64_t n_terms, int64_t n_atoms,
              int64_t max_atoms, const int64_t* weights, int32_t* block_of_term, int64_t* block_start,
              int32_t* block_atoms);

int64_t group(const int64_t* start, const int32_t* players, const int32_t* kinds, int64_t n_tables,
              int64_t n_players, int64_t most_tables, int64_t reach, int32_t* group_of_table,
              int32_t* group_players);

}  // namespace FS_LEVEL
}  // namespace fouriershap
