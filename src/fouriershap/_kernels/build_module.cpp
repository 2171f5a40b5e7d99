#include "binding.h"

#define FS_LEVEL baseline
#include "build.h"
#undef FS_LEVEL
#define FS_LEVEL avx2
#include "build.h"
#undef FS_LEVEL

namespace fouriershap {

static void spectrum_tables(In<int32_t, 1> block_bits, In<int64_t, 1> histogram_offset,
                            In<double, 1> histograms, In<int64_t, 1> term_start, In<uint32_t, 1> term_mask,
                            In<double, 2> coefficients, In<double, 3> shares, In<int32_t, 1> table_block,
                            In<int64_t, 1> table_offset, In<int32_t, 2> table_slots, int64_t order,
                            int64_t first_table, int64_t last_table, Out<double, 1> values) {
  require(FS_PICK(spectrum_tables)(
      {block_bits.data(), histogram_offset.data(), histograms.data(), term_start.data(), term_mask.data(),
       coefficients.data(), length(coefficients, 1), shares.data(), length(shares, 1), order},
      {table_block.data(), table_offset.data(), table_slots.data(), length(table_slots, 1), first_table,
       last_table, values.data()}));
}

static int64_t cover(In<int64_t, 1> start, In<int32_t, 1> atoms, int64_t n_atoms, int64_t max_atoms,
                     In<int64_t, 1> weights, Out<int32_t, 1> block_of_term, Out<int64_t, 1> block_start,
                     Out<int32_t, 1> block_atoms) {
  int64_t n_blocks = 0;
  require(FS_PICK(cover)({start.data(), atoms.data(), length(start) - 1, n_atoms, max_atoms, weights.data()},
                         {block_of_term.data(), block_start.data(), block_atoms.data()}, n_blocks));
  return n_blocks;
}

static int64_t group(In<int64_t, 1> start, In<int32_t, 1> players, In<int32_t, 1> kinds, int64_t n_players,
                     int64_t most_tables, int64_t reach, Out<int32_t, 1> group_of_table,
                     Out<int32_t, 2> group_players) {
  int64_t n_groups = 0;
  require(FS_PICK(group)(
      {start.data(), players.data(), kinds.data(), length(kinds), n_players, most_tables, reach},
      {group_of_table.data(), group_players.data()}, n_groups));
  return n_groups;
}

void bind_build(nb::module_& parent) {
  nb::module_ m =
      parent.def_submodule("build", "Blocks of terms, groups of tables, and the tables of spectra.");
  m.def("spectrum_tables", &spectrum_tables, FreeGil());
  m.def("cover", &cover, FreeGil());
  m.def("group", &group, FreeGil());
}

}  // namespace fouriershap
