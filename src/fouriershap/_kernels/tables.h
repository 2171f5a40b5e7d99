// Patterns, histograms and look-ups. The twin, tables_numpy.py, documents every array.
// Included once per instruction set: only the structs are guarded.
#include <cstdint>

#ifndef FOURIERSHAP_TABLES_ARGUMENTS
#define FOURIERSHAP_TABLES_ARGUMENTS
namespace fouriershap {

// Rows as codes, a line per column: (n_narrow, stride) and (n_wide, stride). `missing`: some may be a missing
// value's.
struct Codes {
  const uint8_t* narrow;
  const uint16_t* wide;
  int64_t n_narrow, n_wide, stride, n_rows;
  bool missing;
};

struct Blocks {
  const int32_t *cut_start, *cut_missing, *cut_column;
  const uint16_t* cut_at;
  const int32_t *cut_weight, *base, *n_patterns;
  int64_t n;
};

// Adds to `out` the rows of each pattern of blocks [first_block, last_block), from `offset[block]` on.
struct Histograms {
  const double* weights;  // (n_rows,), or null where every row weighs 1
  const int64_t* offset;
  int64_t first_block, last_block;
  double* out;
};

template <class T>
struct TableSet {
  const int32_t* table_block;
  const int64_t* table_offset;
  const int32_t *group_start, *group_players, *group_output, *group_width;
  int64_t n_groups;
  const T* values;
  int64_t n_players, n_outputs;
};

}  // namespace fouriershap
#endif

namespace fouriershap {
namespace FS_LEVEL {

void histogram(const Codes& codes, const Blocks& blocks, const Histograms& histograms);

// out: (n_rows, n_players, n_outputs), added to. False: out of memory.
template <class T>
bool explain(const Codes& codes, const Blocks& blocks, const TableSet<T>& tables, int64_t rows_per_block,
             double* out);

}  // namespace FS_LEVEL
}  // namespace fouriershap
