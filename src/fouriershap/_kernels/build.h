// Building tables: blocks of terms, groups of tables, tables of spectra. The twin, build_numpy.py, documents
// every array. Included once per instruction set: only the structs are guarded.
#include <cstdint>

#ifndef FOURIERSHAP_BUILD_ARGUMENTS
#define FOURIERSHAP_BUILD_ARGUMENTS
namespace fouriershap {

struct SpectrumBlocks {
  const int32_t* bits;
  const int64_t* histogram_offset;
  const double* histograms;
  const int64_t* term_start;
  const uint32_t* term_mask;
  const double* coefficients;  // (n_terms, n_outputs)
  int64_t n_outputs;
  const double* shares;  // (shares_side, shares_side, order + 1)
  int64_t shares_side, order;
};

// Tables [first, last) are written.
struct SpectrumTables {
  const int32_t* block;
  const int64_t* offset;
  const int32_t* slots;  // (n_tables, slots_stride)
  int64_t slots_stride, first, last;
  double* values;
};

struct CoverTerms {
  const int64_t* start;
  const int32_t* atoms;
  int64_t n_terms, n_atoms, max_atoms;
  const int64_t* weights;
};

struct CoverBlocks {
  int32_t* of_term;
  int64_t* start;
  int32_t* atoms;
};

struct GroupTables {
  const int64_t* start;
  const int32_t *players, *kinds;
  int64_t n_tables, n_players, most_tables, reach;
};

struct Groups {
  int32_t *of_table, *players;
};

}  // namespace fouriershap
#endif

namespace fouriershap {
namespace FS_LEVEL {

// All return false where there is no memory.

bool spectrum_tables(const SpectrumBlocks& blocks, const SpectrumTables& tables);

bool cover(const CoverTerms& terms, const CoverBlocks& blocks, int64_t& n_blocks);

bool group(const GroupTables& tables, const Groups& groups, int64_t& n_groups);

}  // namespace FS_LEVEL
}  // namespace fouriershap
