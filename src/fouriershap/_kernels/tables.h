// Patterns, histograms and look-ups. tables_numpy.py is the specification.
#pragma once
#include "span.h"

namespace fouriershap {

// Rows as codes, a line per column, both with the same number of columns, a multiple of 64. `missing`: some
// may be a missing value's.
struct Codes {
  Matrix<const uint8_t> narrow;
  Matrix<const uint16_t> wide;
  int64_t n_rows;
  bool missing;

  int64_t stride() const { return narrow.columns; }
};

struct Blocks {
  Span<const int32_t> cut_start, cut_missing, cut_column;
  Span<const uint16_t> cut_at;
  Span<const int32_t> cut_weight, base, n_patterns;

  int64_t n() const { return base.size; }
};

// Adds to `out` the rows of each pattern of blocks [first_block, last_block), from row `offset[block]` on.
struct Histograms {
  Matrix<const double> weights;  // (n_rows, n_channels), or empty where every row weighs 1 in one channel
  Span<const int64_t> offset;
  int64_t first_block, last_block;
  Matrix<double> out;  // (patterns, n_channels)
};

constexpr int kWidth = 8;               // players of a table
constexpr int64_t kBytePatterns = 256;  // of a block whose patterns are bytes

template <class T>
struct TableSet {
  Span<const int32_t> table_block;
  Span<const int64_t> table_offset;
  Span<const int32_t> group_start;
  Matrix<const int32_t> group_players;
  Span<const int32_t> group_output, group_width;
  Span<const T> values;
  int64_t n_players, n_outputs;

  int64_t n_groups() const { return group_output.size; }
};

void histogram(const Blocks& blocks, const Codes& codes, const Histograms& histograms);

// out: (n_rows, n_players, n_outputs), added to.
template <class T>
void explain(const Blocks& blocks, const TableSet<T>& tables, const Codes& codes, int64_t rows_per_block,
             double* out);

}  // namespace fouriershap
