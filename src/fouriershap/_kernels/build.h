// Building tables: blocks of terms, groups of tables, tables of spectra. build_numpy.py is the specification.
#pragma once
#include "span.h"

namespace fouriershap {

struct SpectrumBlocks {
  Span<const int32_t> bits;
  Span<const int64_t> histogram_offset;
  Span<const double> histograms;
  Span<const int64_t> term_start;
  Span<const uint32_t> term_mask;
  Matrix<const double> coefficients;  // (n_terms, n_outputs)
  Span<const double> shares;          // (shares_side, shares_side, order + 1)
  int64_t shares_side, order;

  int64_t n_outputs() const { return coefficients.columns; }
};

struct SpectrumTables {
  Span<const int32_t> block;
  Span<const int64_t> offset;
  Matrix<const int32_t> slots;
  Span<double> values;  // written
};

struct CoverTerms {
  Span<const int64_t> start;
  Span<const int32_t> atoms;
  int64_t n_atoms, max_atoms;
  Span<const int64_t> weights;

  int64_t n() const { return start.size - 1; }
};

struct CoverBlocks {
  Span<int32_t> of_term;
  Span<int64_t> start;
  Span<int32_t> atoms;
};

struct GroupTables {
  Span<const int64_t> start;
  Span<const int32_t> players, kinds;
  int64_t n_players, most_tables, reach;

  int64_t n() const { return kinds.size; }
};

struct Groups {
  Span<int32_t> of_table;
  Matrix<int32_t> players;
};

void spectrum_tables(const SpectrumBlocks& blocks, const SpectrumTables& tables);

// Returns the number of blocks.
int64_t cover(const CoverTerms& terms, const CoverBlocks& blocks);

// Returns the number of groups.
int64_t group(const GroupTables& tables, const Groups& groups);

}  // namespace fouriershap
